"""What a final text must say: the plan as a Workload, without any template, quoting or escaping."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from launcher.container.container import Container, container_of
from launcher.container.devices import gpu_devices
from launcher.container.paths import has_relative_bind, host_source
from launcher.container.secrets import mounted_secrets, passed_secrets, written_secrets
from launcher.container.tmpfs import needs_own_tmp
from launcher.formats.workload import SIZE, GpuRequest, MountPoint, Shm, Workload
from launcher.job.reserved import LABEL_PREFIX, SECRETS_FOLDER
from launcher.job.spec import Mount, secret_path
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.names import node_names
from launcher.verify.plain import PLANNED, plain, planned
from launcher.verify.readback import ReadBack, absolute, flat

_JOB_LABEL, _NODE_LABEL = LABEL_PREFIX + "job", LABEL_PREFIX + "node"
_CHANGES_INTO_ITS_FOLDER = ("cd", "--", "<$(dirname -- ><$>0)", "<|><|>", "exit", "125")


def expected(plan: LaunchPlan, *, base: Path | None) -> ReadBack | Workload:
    """Return what the text of the plan's target says when it says what the plan says."""
    container = container_of(plan)
    common = planned_workload(plan, container)
    if plan.target == "kubernetes":
        from launcher.verify.expected_kubernetes import expected_on_kubernetes  # for this target only

        return expected_on_kubernetes(plan, container, ReadBack(**plain(common)))
    common = common._replace(secrets=_engine_secrets(plan, container), mounts=_engine_mounts(plan))
    if plan.target == "docker":
        return common._replace(rest=dict(_docker_rest(plan, base)))
    return _compose(plan, ReadBack(**plain(common)))


def planned_workload(plan: LaunchPlan, container: Container) -> Workload:
    """Return what every target's text says; `secrets` and `rest` are each target's own."""
    job = plan.job
    check = job.healthcheck
    times = {
        "interval": check.interval,
        "timeout": check.timeout,
        "retries": check.retries,
        "start_period": check.start_period,
    }
    return Workload(
        format="",
        place="",
        span=PLANNED,
        name=planned(plan.name),
        image=planned(job.image),
        pull_policy=planned(job.pull_policy),
        entrypoint=planned(container.entrypoint),
        command=planned(container.args),
        env={name: planned(value) for name, value in container.env},
        labels={name: planned(value) for name, value in container.labels},
        shm=Shm(SIZE, planned(plan.shm.size.value)),
        memory=planned(plan.memory.limit),
        cpus=planned(job.resources.cpus),
        **_engine_devices(plan),
        mounts=tuple(_mount(plan, mount) for mount in job.mounts),
        health=planned(container.health),
        health_times={name: planned(value) for name, value in times.items()},
        user=planned(job.user),
        groups=job.group_add,
        working_dir=planned(job.working_dir),
        read_only=planned(job.read_only),
        stop_signal=planned(job.stop_signal),
        stop_timeout=planned(job.stop_grace_period),
        ulimits={limit.name: (limit.soft, limit.hard) for limit in job.ulimits},
    )


def _mount(plan: LaunchPlan, mount: Mount) -> MountPoint:
    bind = mount.type == "bind"
    source = absolute(mount.source, Path(plan.job.path).parent) if bind else mount.source
    size = plan.memory.limit if mount.type == "tmpfs" else None
    return MountPoint(mount.type, planned(source), planned(mount.target), mount.read_only, planned(size))


def _engine_mounts(plan: LaunchPlan) -> tuple[MountPoint, ...]:
    """Return the mounts in the order of an engine's text: what lies in memory, the job's others, files of secrets."""
    in_memory = [MountPoint("tmpfs", None, planned("/tmp"))] if needs_own_tmp(plan) else []
    if written_secrets(plan):
        in_memory.append(MountPoint("tmpfs", None, planned(SECRETS_FOLDER), options="mode=1777"))
    mounts = [_mount(plan, each) for each in plan.job.mounts]
    in_memory += [each for each in mounts if each.type == "tmpfs"]
    folder = Path(plan.job.path).parent
    secrets = [
        MountPoint("bind", planned(absolute(each.file, folder)), planned(secret_path(name)), True)
        for name, each in mounted_secrets(plan)
    ]
    return (*in_memory, *(each for each in mounts if each.type != "tmpfs"), *secrets)


def _engine_secrets(plan: LaunchPlan, container: Container) -> dict[str, str]:
    folder = Path(plan.job.path).parent
    return {
        name: str(secret.env) if secret.file is None else f"file {absolute(secret.file, folder)}"
        for name, secret in container.secrets
    }


def _engine_devices(plan: LaunchPlan) -> dict[str, Any]:
    """Return the fields of a Workload that say which GPUs it gets."""
    nodes = gpu_devices(plan)
    if nodes:
        return {"devices": {"nodes": " ".join(nodes)}}
    gpus = plan.gpus
    number = 0 if gpus.ids or gpus.all else gpus.count
    return {"gpus": planned(GpuRequest(number, gpus.ids, gpus.all))} if gpus else {}


def _docker_rest(plan: LaunchPlan, base: Path | None) -> Iterator[tuple[str, object]]:
    yield from (("command", "exec docker run"), ("--rm", True), ("--init", True))
    before = tuple(_commands_before(plan, base))
    if before:
        yield "commands before", before


def _commands_before(plan: LaunchPlan, base: Path | None) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command that the script runs before docker's, as `statements` reads them."""
    if base is not None and has_relative_bind(plan):
        yield _CHANGES_INTO_ITS_FOLDER
    for name, secret in mounted_secrets(plan):
        path = host_source(plan, str(secret.file), base)
        tests = (("<[>", "<!>", flag, path, "<]>") for flag in ("-f", "-r", "-s"))
        first, *others = tests
        yield ("if", *first, *(word for each in others for word in ("<|><|>", *each)))
        yield from _stop_before(f"secret {name}: file {path} can't be read, or is empty")
    passed = passed_secrets(plan)
    held = [name for name, secret in passed if secret.file is not None or name != secret.env]
    holders = {name: f"trainlaunch_secret_{number}" for number, name in enumerate(held, start=1)}
    for name, secret in passed:
        tested, message = secret.env, f"variable {secret.env} of this shell is not set"
        if secret.file is not None:
            path, tested = host_source(plan, secret.file, base), holders[name]
            message = f"file {path} can't be read, or is empty"
            yield (f"{tested}=<$><(>cat", f"{path}<)>")
        yield ("if", "<[>", "-z", f"<${{{tested}:-}}>", "<]>")
        yield from _stop_before(f"secret {name}: {message}")
    renamed = [(name, secret.env) for name, secret in passed if name in holders and secret.file is None]
    yield from ((f"{holders[name]}=<${{{source}:-}}>",) for name, source in renamed)
    yield from ((f"{name}=<$>{holder}",) for name, holder in holders.items())
    if passed:
        yield ("export", *(name for name, _ in passed))


def _stop_before(message: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of a guard after its condition."""
    yield from (("then",), ("echo", message, "<>><&>2"), ("exit", "125"), ("fi",))


def _compose(plan: LaunchPlan, common: ReadBack) -> ReadBack:
    first, *others = node_names(plan.name, plan.nodes)
    volumes = {mount.source for mount in plan.job.mounts if mount.type == "volume"}
    service: dict[str, object] = {"init": True, "restart": "no", "container_name": first}
    if others:
        service["hostname"] = first
    rest = {
        "name": plan.name,
        "service": service,
        "nodes": {str(number): _other_node(plan, number, name) for number, name in enumerate(others, start=1)},
        "networks": {"default": {"labels": {_JOB_LABEL: plan.job.name}}},
        "volumes": {name: {"name": name} for name in volumes},
    }
    labels = {**common.labels, _NODE_LABEL: "0"} if others else common.labels
    devices = _node_devices(plan, 0) if others else common.devices
    return common._replace(name=first, labels=labels, devices=devices, rest=dict(flat(rest)))


def _other_node(plan: LaunchPlan, number: int, name: str) -> dict[str, object]:
    """Return all in which a node differs from the first."""
    gpus = {f"devices {device}": ids for device, ids in _node_devices(plan, number).items()}
    depends_on = {"rest service.depends_on.0": node_names(plan.name, plan.nodes)[0]}
    own = {f"rest service.{key}": name for key in ("hostname", "container_name")}
    return {"name": name, f"labels {_NODE_LABEL}": str(number), **gpus, **own, **depends_on}


def _node_devices(plan: LaunchPlan, number: int) -> dict[str, str]:
    """Return the GPUs of a node; several share one host, each with its own part of them."""
    if not plan.gpus:
        return {}
    before = number * plan.gpus.count
    return {"gpus": ",".join(str(before + gpu) for gpu in range(plan.gpus.count))}
