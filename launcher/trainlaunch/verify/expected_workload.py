"""What a rendered file must say: the plan as a Workload, without any template, quoting or escaping.

And a Workload as plain values, by the names that messages have for them: what two readings are compared by.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from trainlaunch.container.container import Container, container_of
from trainlaunch.container.engine_options import gpu_devices, needs_own_tmp
from trainlaunch.container.paths import machine_mounts
from trainlaunch.container.secret_delivery import mounted_secrets, written_secrets
from trainlaunch.diagnostics import Span
from trainlaunch.formats.workload import (
    SIZE,
    GpuRequest,
    Known,
    MountPoint,
    ShmSetting,
    Unknown,
    Value,
    Workload,
    stated,
)
from trainlaunch.job.reserved import SECRETS_FOLDER
from trainlaunch.job.spec import Mount, secret_path
from trainlaunch.plan.launch_plan import LaunchPlan

T = TypeVar("T")

PLANNED = Span("", 1, 1, 1, 1)  # the place of what a plan decides: it stands in no text
_SAFE_SIZE = re.compile(r"""(['"]?)\d+(?:Ki|Mi|Gi|[kmg])?\1""")


class ReadMount(NamedTuple):
    """One mount as the target sees it; a bind's source is absolute, a scratch has none, a tmpfs may have a size."""

    type: str
    source: str | None
    target: str
    read_only: bool
    size: int | str | None = None


def planned(value: T | None) -> Value[T]:
    """Return a value that the plan decides, as a reader would give it; None stays None, only a number has a text."""
    return None if value is None else Known(value, str(value) if isinstance(value, int) else "", PLANNED)


def plain(workload: Workload) -> dict[str, Any]:
    """Return what a Workload says; None is said by nothing, and a text that isn't decided stands in `<>`."""
    return {
        "name": _text(workload.name),
        "image": _text(workload.image),
        "pull": _text(workload.pull_policy),
        "process": (*_words(workload.entrypoint, ("",)), *_words(workload.command, ())),
        "env": {name: _text(value) for name, value in workload.env.items()},
        "secrets": dict(workload.secrets),
        "labels": {name: _text(value) for name, value in workload.labels.items()},
        "shm_size": _size(workload.shm.size) if workload.shm.kind == SIZE else None,
        "memory": _size(workload.memory),
        "cpus": _number(workload.cpus),
        "devices": _gpus(workload.gpus) | dict(workload.devices),
        "mounts": tuple(map(_mount, workload.mounts)),
        "health": _text(workload.health),
        "health_times": {name: _number(value) for name, value in workload.health_times.items()},
        "user": _text(workload.user),
        "groups": workload.groups,
        "working_dir": _text(workload.working_dir),
        "read_only": False if workload.read_only is None else _number(workload.read_only),
        "stop_signal": _text(workload.stop_signal),
        "stop_timeout": _number(workload.stop_timeout),
        "ulimits": dict(workload.ulimits),
        "rest": dict(workload.rest),
    }


def _text(value: Value[str]) -> str | None:
    return f"<{value.text}>" if isinstance(value, Unknown) else None if value is None else value.value


def _words(value: Value[tuple[str, ...]], absent: tuple[str, ...]) -> tuple[str, ...]:
    """Return an argv; what is `absent` is the image's own and must not be taken for none."""
    return (f"<{value.text}>",) if isinstance(value, Unknown) else absent if value is None else value.value


def _number(value: Value[int] | Value[bool]) -> int | str | None:
    return f"<{value.text}>" if isinstance(value, Unknown) else None if value is None else value.value


def _size(value: Value[int]) -> int | str | None:
    """Return a size; its text where Docker and Kubernetes might take it for two."""
    unclear = isinstance(value, Known) and not _SAFE_SIZE.fullmatch(value.text)
    return f"<{value.text}>" if value is not None and unclear else _number(value)


def _gpus(value: Value[GpuRequest]) -> dict[str, str]:
    if value is None:
        return {}
    if isinstance(value, Unknown):
        return {"gpus": f"<{value.text}>"}
    gpus = value.value
    if gpus.ids and (gpus.number or gpus.all):
        return {"gpus": value.text}  # both at once, which no engine takes
    return {gpus.resource or "gpus": ",".join(gpus.ids) or ("all" if gpus.all else str(gpus.number))}


def _mount(mount: MountPoint) -> ReadMount:
    kind = f"{mount.type} with {mount.options}" if mount.options else mount.type
    return ReadMount(kind, _text(mount.source), _text(mount.target) or "", mount.read_only, _size(mount.size))


def absolute(path: str | None, folder: Path) -> str | None:
    """Return `path` without dots, read from `folder` where it is relative."""
    return None if path is None else os.path.normpath(folder.absolute() / path)


def parse_rendering(plan: LaunchPlan, text: str, *, base: Path | None) -> dict[str, Any]:
    """Return what `text`, a rendered file for the plan's target, says, as plain values.

    `base` is the folder that its relative paths are relative to; None: the job file's own.
    """
    folder = Path(plan.job.path).parent if base is None else base
    return plain(_module(plan).parse_rendering(text, folder))


def expected(plan: LaunchPlan, *, base: Path | None) -> dict[str, Any]:
    """Return what the text of the plan's target says when it says what the plan says, as plain values."""
    return plain(_module(plan).expected(plan, base))


def _module(plan: LaunchPlan) -> Any:
    return plan.target_record.module("trainlaunch.verify")


def engine_workload(plan: LaunchPlan) -> Workload:
    """Return what an engine's text says; `rest` is each target's own."""
    container = container_of(plan)
    common = planned_workload(plan, container)
    return common._replace(secrets=_engine_secrets(plan, container), mounts=_engine_mounts(plan))


def kept_mounts(plan: LaunchPlan, wanted: Workload) -> tuple[MountPoint, ...]:
    """Return the mounts in memory and of the machine, where a text brings the repository's files by another way."""
    of_machine: set[str | None] = {each.target for each in machine_mounts(plan)}
    return tuple(each for each in wanted.mounts if each.type == "tmpfs" or stated(each.target) in of_machine)


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
        labels={name: planned(value) for name, value in (*container.labels, *container.notes)},
        shm=ShmSetting(SIZE, planned(plan.shm.size.value)),
        memory=planned(plan.memory.limit),
        cpus=planned(job.resources.cpus),
        **_engine_devices(plan),
        mounts=tuple(_planned_mount(plan, mount) for mount in job.mounts),
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


def _planned_mount(plan: LaunchPlan, mount: Mount) -> MountPoint:
    bind = mount.type == "bind"
    source = absolute(mount.source, Path(plan.job.path).parent) if bind else mount.source
    size = plan.memory.limit if mount.type == "tmpfs" else None
    return MountPoint(mount.type, planned(source), planned(mount.target), mount.read_only, planned(size))


def _engine_mounts(plan: LaunchPlan) -> tuple[MountPoint, ...]:
    """Return the mounts in the order of an engine's text: what lies in memory, the job's others, files of secrets."""
    in_memory = [MountPoint("tmpfs", None, planned("/tmp"))] if needs_own_tmp(plan) else []
    if written_secrets(plan):
        in_memory.append(MountPoint("tmpfs", None, planned(SECRETS_FOLDER), options="mode=1777"))
    mounts = [_planned_mount(plan, each) for each in plan.job.mounts]
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
