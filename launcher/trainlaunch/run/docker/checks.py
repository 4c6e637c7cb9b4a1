"""What can be known about the host before anything starts: CPUs, memory, GPUs, bind sources, secrets. All at once.

And what keeps a container from starting: flags that only the command line gives, and the engine's refusals.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlaunch.container.paths import absolute_bind
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import ContainerInfo
from trainlaunch.run.base.host_gpus import INSTALL_AMDGPU, NO_GPU, amd_findings, gpu_nodes
from trainlaunch.run.base.run_query import NAME_TAKEN, held_by_same_job
from trainlaunch.run.base.secret_values import secret_findings
from trainlaunch.run.docker.client import Engine, EngineRefused
from trainlaunch.units import counted, format_cpus, format_size

if TYPE_CHECKING:
    from trainlaunch.formats.docker.flags import Flag

NOT_FOUND = 404
NVIDIA_HOOKS = ("nvidia-container-runtime-hook", "nvidia-cdi-hook")
INSTALL_TOOLKIT = (
    "install nvidia-container-toolkit, then run `sudo nvidia-ctk runtime configure --runtime=docker` and "
    "`sudo systemctl restart docker`"
)
NOT_FOR_UP = "TL147"


def host_findings(plan: LaunchPlan, info: Mapping[str, Any], *, local: bool) -> tuple[Diagnostic, ...]:
    """Return what stops `plan` on the engine whose `GET /info` is `info`.

    `local` says that the engine shares this process's files and devices; else only what the engine tells is checked.
    """
    found = [*_cpus(plan, info), *_memory(plan, info), *secret_findings(plan)]
    if plan.gpus and plan.job.resources.gpu_vendor == "nvidia":
        found += _gpus(plan, info, local=local)
    elif local:
        found += amd_findings(plan)
    if local:
        found += mount_findings(plan)
    if plan.job.patch is not None:
        found += flag_findings(plan)
    return tuple(found)


def shares_this_host(info: Mapping[str, Any], socket_path: str | None) -> bool:
    """Whether the engine runs where we do: a Unix socket, the same kernel and the same host name.

    Docker Desktop's engine runs in a virtual machine; in a container with a mounted socket the paths are others.
    """
    here = os.uname()
    names = {here.nodename, socket.gethostname()}
    return socket_path is not None and info.get("KernelVersion") == here.release and info.get("Name") in names


def _cpus(plan: LaunchPlan, info: Mapping[str, Any]) -> Iterator[Diagnostic]:
    asked, there = plan.job.resources.cpus, int(info.get("NCPU") or 0)
    if asked is not None and not enforces(info, "CpuCfsQuota"):
        yield _not_enforced(plan, "cpus")
    if asked is not None and there and asked > there * 1000:
        yield Diagnostic(
            code="TL504",
            message=f"resources.cpus {format_cpus(asked)} is more than the engine's {counted(there, 'CPU')}",
            why="the engine refuses a limit above its own number of CPUs",
            fix=f"set resources.cpus to {there}, or add `--set resources.cpus={there}` for this host",
            span=plan.job.span("resources.cpus"),
            field="resources.cpus",
        )


def _memory(plan: LaunchPlan, info: Mapping[str, Any]) -> Iterator[Diagnostic]:
    asked, there = plan.job.resources.memory, int(info.get("MemTotal") or 0)
    if asked is not None and not enforces(info, "MemoryLimit"):
        yield _not_enforced(plan, "memory")
    if asked is not None and there and asked * plan.nodes > there:
        mib = there // (1024 * 1024)
        of_all = f" for each of {plan.nodes} nodes" * (plan.nodes > 1)
        yield Diagnostic(
            code="TL504",
            message=f"resources.memory {format_size(asked)}{of_all} is more than the engine's {mib}Mi",
            why="the limit could never be reached: the kernel would kill something on this host first",
            fix=f"set resources.memory below {mib // plan.nodes}Mi, or run on a larger machine",
            span=plan.job.span("resources.memory"),
            field="resources.memory",
        )


def enforces(info: Mapping[str, Any], limit: str) -> bool:
    """Whether an engine with this `GET /info` enforces a limit; a rootless Podman on cgroup v1 says so and doesn't."""
    ignored = info.get("Rootless") is True and str(info.get("CgroupVersion")) == "1"
    return not ignored and bool(info.get(limit, True))


def _not_enforced(plan: LaunchPlan, resource: str) -> Diagnostic:
    return Diagnostic(
        code="TL504",
        message=f"resources.{resource} is set and this engine can't enforce it",
        why=f"it has no {resource} controller (a rootless engine needs cgroup v2 and delegation), and would ignore it",
        fix=f"delegate the {resource} controller to the engine's user, or leave out resources.{resource}",
        span=plan.job.span(f"resources.{resource}"),
        field=f"resources.{resource}",
    )


def unenforced_limits(limits: list[str]) -> Diagnostic:
    """Return the finding about an engine that has no controller for these limits, whatever the job."""
    return Diagnostic(
        "TL504",
        f"the engine can't limit {' or '.join(limits)}",
        fix=(
            "use cgroup v2, and for a rootless engine delegate the controllers: `systemctl edit "
            "user@.service`, Delegate=yes"
        ),
    )


def _gpus(plan: LaunchPlan, info: Mapping[str, Any], *, local: bool) -> Iterator[Diagnostic]:
    span = plan.job.span("resources.gpus")
    asked = plan.gpus.words
    nodes = gpu_nodes() if local else None
    if nodes == 0:
        yield Diagnostic(
            code=NO_GPU,
            message=f"resources.gpus is {asked} and this host has 0 GPU devices (/dev/nvidia0 is missing)",
            why="no NVIDIA driver is loaded, or the machine has no GPU",
            fix="install the NVIDIA driver until `nvidia-smi` lists a GPU, or add `--set resources.gpus=0`",
            span=span,
            field="resources.gpus",
        )
    elif nodes is not None and plan.gpus.count * plan.nodes > nodes:
        of_all = f" for each of {plan.nodes} nodes" * (plan.nodes > 1)
        yield Diagnostic(
            code=NO_GPU,
            message=f"resources.gpus is {plan.gpus.count}{of_all} and this host has {nodes}",
            why="the engine can't give a GPU that is not there",
            fix=f"set resources.gpus to {nodes // plan.nodes}, or add `--set resources.gpus={nodes // plan.nodes}`",
            span=span,
            field="resources.gpus",
        )
    elif not has_gpu_runtime(info, local=local):
        yield Diagnostic(
            code=NO_GPU,
            message=f"resources.gpus is {asked} and the engine has no NVIDIA runtime",
            why=f"it knows the runtimes {', '.join(sorted(info.get('Runtimes') or {})) or 'none'}, and no CDI device",
            fix=INSTALL_TOOLKIT,
            span=span,
            field="resources.gpus",
        )


def has_gpu_runtime(info: Mapping[str, Any], *, local: bool) -> bool:
    """Whether the engine whose `GET /info` is `info` can give NVIDIA GPUs to a container."""
    if "nvidia" in (info.get("Runtimes") or {}):
        return True
    if any("gpu" in str(each.get("ID", "")) for each in info.get("DiscoveredDevices") or ()):
        return True
    return local and any(shutil.which(each) for each in NVIDIA_HOOKS)


def volume_findings(plan: LaunchPlan, engine: Engine) -> Iterator[Diagnostic]:
    """Yield an error for each read-only volume that the engine would have to make: it would stay empty (TL511)."""
    for index, mount in enumerate(plan.job.mounts):
        if mount.type != "volume" or not mount.read_only:
            continue
        try:
            with engine.attempting(f"look for volume {mount.source}") as client:
                client.inspect_volume(mount.source)
        except EngineRefused as refused:
            if refused.status != NOT_FOUND:
                raise
            yield Diagnostic(
                code="TL511",
                message=f"mounts[{index}].source {mount.source}: the engine has no volume of that name, to read at "
                f"{mount.target}",
                why="the engine would make an empty one, and read_only keeps the job from filling it",
                fix=f"correct the name (`docker volume ls`), or fill one first: `docker volume create {mount.source}`",
                span=plan.job.span(f"mounts.{index}.source") or plan.job.span(f"mounts.{index}"),
                field=f"mounts.{index}.source",
            )


def mount_findings(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error for each bind whose source is not on this host (TL511)."""
    for index, mount in enumerate(plan.job.mounts):
        if mount.type == "bind" and not Path(absolute_bind(plan, mount)).exists():
            yield Diagnostic(
                code="TL511",
                message=f"mounts[{index}].source {mount.source} does not exist on this host",
                why=f"it would be mounted from {absolute_bind(plan, mount)} to {mount.target}",
                fix=f"create it, or correct the source of {mount.target}",
                span=plan.job.span(f"mounts.{index}.source") or plan.job.span(f"mounts.{index}"),
                field=f"mounts.{index}.source",
            )


def flag_findings(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error for each flag whose effect only the `docker` command can give."""
    body: dict[str, Any] = {"HostConfig": {}}
    for flag in plan.job.patch.flags if plan.job.patch else ():
        why = _why_not(body, flag)
        if why:
            yield Diagnostic(
                NOT_FOR_UP,
                f"`up` can't give {' '.join(flag.words)} the effect that it has for the docker command",
                f"run `trainlaunch render {plan.job.path} | sh`, or delete the flag",
                why=why,
                span=flag.span,
                field=f"patches.docker.extra_args.{flag.at}",
            )


def _why_not(body: dict[str, Any], flag: Flag) -> str:
    from trainlaunch.formats.docker.create_request import add_flags  # few jobs have a patch
    from trainlaunch.formats.docker.table import FOR_UP

    if flag.name not in FOR_UP:
        return "the command line does something for it that no create request says"
    try:
        add_flags(body, [(flag.name, flag.value)], folder=Path())
    except ValueError as cause:
        return str(cause)
    return ""


def start_refused(refused: EngineRefused) -> TargetUnavailable:
    """Return the error for a container that was not started: TL505 where its GPUs have no driver, else the engine's."""
    amd = "adding custom device" in refused.explanation and "/dev/" in refused.explanation
    if not amd and "could not select device driver" not in refused.explanation:
        return refused
    return TargetUnavailable(
        [
            Diagnostic(
                code=NO_GPU,
                message="the engine has no driver for the GPUs that resources.gpus asks for",
                why=f"the engine says: {refused.explanation.strip()}",
                fix=INSTALL_AMDGPU if amd else INSTALL_TOOLKIT,
            )
        ]
    )


def name_taken(plan: LaunchPlan, holder: ContainerInfo | None) -> Diagnostic:
    """Return the error for a name that something else holds (TL506)."""
    if holder is not None and holder.job == plan.job.name:
        return held_by_same_job(holder, plan.name)
    other = f"job {holder.job}" if holder is not None and holder.job else "something that trainlaunch did not start"
    name = plan.name if holder is None else holder.name
    return Diagnostic(
        code=NAME_TAKEN,
        message=f"the container name {name} is taken by {other}",
        why="a container's name is unique on an engine",
        fix=f"give `--name {plan.name}-2`, or remove the other one with `docker rm {name}`",
    )
