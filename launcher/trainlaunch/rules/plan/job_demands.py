"""What a job's own fields and its flags of docker run take, and what the policies in force say to each.

Fields with a limit that only a sum or a missing value can break are in policy_limits.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from trainlaunch.container.secret_delivery import secrets_of_files
from trainlaunch.diagnostics import Span
from trainlaunch.formats.docker.flags import Flag
from trainlaunch.formats.docker.values import is_path, volume_options, volume_paths
from trainlaunch.formats.gpus import NO_GPUS, gives_gpu_nodes, gives_gpus, gives_gpus_at
from trainlaunch.formats.quantities import engine_bytes
from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.job.spec import JobSpec
from trainlaunch.plan.launch_plan import LaunchPlan, cache_last_plan
from trainlaunch.policy.demands import (
    CAPABILITY,
    CLAIM,
    CPUS,
    ENGINE_SOCKET,
    EXTENDED,
    GPUS,
    HOST_PATH,
    IMAGE,
    LIFTED,
    MEMORY,
    PRIVILEGE,
    Demand,
    Refusal,
    annotation_demands,
    capability,
    device_path,
    extended,
    host_path,
    is_true,
    label_demands,
    privilege,
    refusals,
)
from trainlaunch.rules.base.rule import Problem


class RefusedDemands(NamedTuple):
    """What passes a policy's limits, and what its lists don't allow."""

    above: tuple[Problem, ...] = ()
    not_allowed: tuple[Problem, ...] = ()


class _Stated(NamedTuple):
    """A demand with the field that sets it, and its place."""

    field: str
    demand: Demand
    span: Span | None


@cache_last_plan
def refused_demands(plan: LaunchPlan) -> RefusedDemands:
    """Return each thing that the job takes and a policy refuses."""
    job = plan.job
    if job.policy is None:
        return RefusedDemands()
    stated = [*(_fields(plan) if plan.target_record.starts_container else ()), *_flags(job)]
    found = [(each, refusal) for each in stated for refusal in refusals(job.policy, each.demand)]
    return RefusedDemands(
        tuple(_problem(*each) for each in found if _is_ceiling(each[1])),
        tuple(_problem(*each) for each in found if not _is_ceiling(each[1])),
    )


def _is_ceiling(refusal: Refusal) -> bool:
    return refusal.rule.startswith("max.")


def _fields(plan: LaunchPlan) -> Iterator[_Stated]:
    for field, demand in _named(plan):
        span = plan.job.span(field) or plan.job.span(field.partition(".")[0])
        yield _Stated(field, demand, span)


def _named(plan: LaunchPlan) -> Iterator[tuple[str, Demand]]:
    job, folder = plan.job, os.path.dirname(os.path.abspath(plan.job.path))  # noqa: PTH100, PTH120
    for index, mount in enumerate(job.mounts):
        field = f"mounts.{index}.source"
        if mount.type == "pvc":
            yield field, Demand(CLAIM, field, mount.source, mount.source or "")
        elif mount.type in {"bind", "code"}:
            yield field, host_path(field, mount.source or "", folder)
        if gives_gpus_at(mount.target):
            yield f"mounts.{index}.target", Demand(GPUS, field, mount.target, f"mounts.{index}.target {mount.target}")
    for name, secret in secrets_of_files(plan):
        yield f"secrets.{name}.file", host_path(f"secrets.{name}.file", secret.file or "", folder)
    yield from _devices(job)
    for field, stated, read in (
        ("annotations", job.annotations, annotation_demands),
        ("kubernetes.annotations", job.kubernetes.annotations, annotation_demands),
        ("labels", job.labels, label_demands),
    ):
        yield from ((field, each) for item in stated.items() for each in read(*item))
    if job.kind is not None and not job.kubernetes.cpu_limit:
        yield "kubernetes.cpu_limit", Demand(CPUS, "kubernetes.cpu_limit", None, "false")


def _devices(job: JobSpec) -> Iterator[tuple[str, Demand]]:
    """Yield what gives the job devices beside resources.gpus."""
    variables: list[tuple[str, str, str | None]] = [("env", name, value) for name, value in job.env.items()]
    variables += [("secrets", name, None) for name in job.secrets]
    for outer, name, value in variables:
        if gives_gpus(name, value):
            field = f"{outer}.{name}"
            yield field, Demand(GPUS, field, value, f"{field} {value}" if value else field)
    for name, count in job.resources.extended.items():
        yield from ((f"resources.extended.{name}", each) for each in extended(name, str(count), name))
    runtime = job.kubernetes.runtime_class if job.kind is not None else None
    visible = job.env.get("NVIDIA_VISIBLE_DEVICES", ALL_GPUS).strip().lower()
    if runtime and "nvidia" in runtime and not job.resources.gpus and visible not in NO_GPUS:
        field = "kubernetes.runtime_class"
        yield field, Demand(GPUS, field, runtime, f"{field} {runtime} without resources.gpus")


def _flags(job: JobSpec) -> Iterator[_Stated]:
    if job.patch is None or not job.patch.flags:
        return

    for flag in job.patch.flags:
        for demand in flag_demands(flag, str(Path(job.path).absolute().parent)):
            yield _Stated(f"patches.docker.extra_args.{flag.at}", demand, flag.span)


def _problem(stated: _Stated, refusal: Refusal) -> Problem:
    said, fix = _words(stated, refusal)
    allowed = f"policy allows {refusal.allowed}"
    if _is_ceiling(refusal):
        allowed = f"policy's {refusal.rule} is {refusal.allowed}"
    return Problem(
        f"{said}, and the {allowed} ({refusal.place})",
        fix,
        "a policy holds for every job below its folder; no option, override or patch passes it",
        stated.field,
        stated.span,
    )


def _words(stated: _Stated, refusal: Refusal) -> tuple[str, str]:
    """Return what is said of a refused demand, and what to do instead."""
    field, demand, file = stated.field, stated.demand, refusal.span.file
    if demand.kind == GPUS:
        sandbox = field == "kubernetes.runtime_class"
        fix = "add env: {NVIDIA_VISIBLE_DEVICES: void}, or" if sandbox else "delete it, and"
        return f"{demand.said} can give the job any GPU", f"{fix} write resources.gpus"
    if demand.kind == EXTENDED:
        counted = f"ask for it by resources.gpus with gpu_resource: {demand.name}, which is counted"
        fix = f"{counted}, or add allowed_extended: [{demand.name}] to {file}"
        return f"resources.extended has {demand.name} {demand.said}, which may be a part of a GPU", fix
    if demand.kind in {CAPABILITY, PRIVILEGE}:
        said = f"{demand.name} {demand.said}".strip()
        return f"{said} is set", f"delete it, or allow it by {refusal.rule} in {file}"
    if demand.kind == CPUS:
        return f"{field} is false, so CPUs have no limit", f"delete {field}; true is the default"
    if demand.kind == CLAIM:
        return f"{field} is {demand.said}", f"set {field} to one of {refusal.allowed}, or add it to {refusal.place}"
    if demand.kind == HOST_PATH:
        fix = f"take it from below {refusal.allowed}, or add its folder to {refusal.place}"
        return f"{field} is {demand.said}, a path of the host", fix
    return f"{demand.said} is set", "delete it"  # of limits, images and classes


_GIVES_GPUS: Mapping[str, Callable[[str], bool]] = {
    "device": gives_gpu_nodes,
    "env": lambda value: gives_gpus(value.partition("=")[0], value.partition("=")[2] if "=" in value else None),
    **dict.fromkeys(("privileged", "runtime", "device-cgroup-rule"), is_true),
}


def flag_demands(flag: Flag, folder: str) -> Iterator[Demand]:
    """Yield what a flag takes; relative paths are seen from `folder`."""
    value, name, said = flag.value or "", f"--{flag.name}", " ".join(flag.words)
    yield from (host_path(name, path, folder) for path in _paths(flag))
    gives = _GIVES_GPUS.get(flag.name)
    if (gives and gives(value)) or gives_gpus_at(flag.mount_target or ""):
        yield Demand(GPUS, name, value, said)
    if flag.name == "device":
        yield from device_path(name, value.partition(":")[0])
    if flag.name == "annotation":
        yield from annotation_demands(*value.partition("=")[::2])
    if flag.name == "mount" and flag.mount_fields.get("type", "").lower() == "image":
        yield Demand(IMAGE, name, flag.mount_fields.get("source"), said)
    if flag.name == "memory-swap" and engine_bytes(value) != 0:
        yield Demand(MEMORY, name, engine_bytes(value), said)
    if flag.name == "cgroup-parent" or (flag.name == "oom-kill-disable" and is_true(value)):
        yield Demand(LIFTED, name, value, said)
    if flag.name == "cap-add":
        yield capability(name, value)
    if flag.name == "use-api-socket" and is_true(value):
        yield Demand(HOST_PATH, name, ENGINE_SOCKET, ENGINE_SOCKET)
    yield from privilege(name, flag.name, value)


def _paths(flag: Flag) -> Iterator[str]:
    """Yield the paths of the host that --mount and --volume take; none of named volumes."""
    value = flag.value or ""
    if flag.name == "mount":
        fields = flag.mount_fields
        source = fields.get("source", "")
        if source and (fields.get("type", "").lower() == "bind" or is_path(source)):
            yield source
        yield from volume_paths(volume_options(value))
    source, colon, _ = value.partition(":")
    if flag.name == "volume" and colon and (is_path(source) or "/" in source):
        yield source
