"""What a container of a text means, whoever wrote it: a text and the rendering of its job are compared by that."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Any

from trainlaunch.formats.docker.functions import inlined
from trainlaunch.formats.quantities import is_shm
from trainlaunch.formats.workload import SIZE, TMPFS, Known, Unknown, Value, Workload, stated
from trainlaunch.init.takeover import ImportedJob, take_over
from trainlaunch.init.takeover.prologue import wrapped
from trainlaunch.job.reserved import PLAN_VARIABLE
from trainlaunch.lint.linter import read_text
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.rules.sources.source_text import SourceText

_PULL = {"Always": "always", "IfNotPresent": "missing", "Never": "never", "if_not_present": "missing"}
_OURS = ("dev.trainlaunch.", "trainlaunch.dev/", "app.kubernetes.io/")
_OURS_OF_ENV = ("PET_SHUTDOWN_TIMEOUT", PLAN_VARIABLE)


def workloads(text: str, name: str) -> tuple[Workload, ...]:
    """Return the containers of a text."""
    read = read_text(text, name)
    assert isinstance(read, SourceText), f"{name} is {read}"
    return tuple(each.workload for each in read.containers)


def taken(text: str, name: str, folder: Path, pick: str | None = None) -> tuple[ImportedJob, LaunchPlan]:
    """Return the job file made of a text that lies in `folder`, as it is written, and its plan."""
    made = take_over(text.encode(), str(folder / name), pick=pick, folder=folder)
    job = folder / "job.yaml"
    job.write_text(made.text)
    return made, plan_job(read_job(job))


def drafted(plan: LaunchPlan, folder: Path) -> Workload:
    """Return what the plan's rendering starts; it lies beside the job file."""
    name = plan.target_record.file_name.format(name=plan.job.name)
    return workloads(inlined(render(plan, base=folder)), name)[0]


def meaning(workload: Workload, folder: Path) -> dict[str, Any]:
    """Return what a container is started with, our own additions left out; None is what the text leaves open."""
    plan = wrapped(workload)
    argv = (*_words(workload.entrypoint), *_words(workload.command))
    if plan is not None:
        argv = (*plan.entrypoint, *(each.replace("{{", "{").replace("}}", "}") for each in plan.argv))
    mounts = [each for each in workload.mounts if not is_shm(stated(each.target) or "/")]
    if stated(workload.read_only):  # a job's read-only root brings its own
        mounts = [each for each in mounts if stated(each.target) != "/tmp"]
    sized = workload.shm.kind in (SIZE, TMPFS)
    return {
        "image": _plain(workload.image),
        "argv": argv,
        "env": {key: _plain(each) for key, each in workload.env.items() if key not in _OURS_OF_ENV},
        "secrets": dict(workload.secrets),
        "labels": {key: _plain(each) for key, each in workload.labels.items() if not key.startswith(_OURS)},
        "shm": stated(workload.shm.size) if sized else None,
        "memory": _plain(workload.memory),
        "cpus": _plain(workload.cpus),
        "gpus": _plain(workload.gpus),
        "devices": dict(workload.devices),
        "mounts": {
            _plain(each.target): (each.type, _source(each.source, each.type, folder), each.read_only) for each in mounts
        },
        "user": _plain(workload.user),
        "groups": workload.groups,
        "working_dir": _plain(workload.working_dir),
        "read_only": _plain(workload.read_only) or False,
        "stop_signal": _plain(workload.stop_signal),
        "stop_timeout": _plain(workload.stop_timeout),
        "pull_policy": _PULL.get(str(_plain(workload.pull_policy)), _plain(workload.pull_policy)),
        "ulimits": dict(workload.ulimits),
    }


def compared(
    text: str, name: str, folder: Path, pick: str | None = None
) -> tuple[dict[str, Any], dict[str, Any], ImportedJob]:
    """Return what a text's container means, what the rendering of its job means, and the job file."""
    made, plan = taken(text, name, folder, pick)
    found = [each for each in workloads(text, name) if pick is None or pick in each.place or pick == stated(each.name)]
    return meaning(found[0], folder), meaning(drafted(plan, folder), folder), made


def _plain(value: Value[Any]) -> Any:
    return f"<{value.text}>" if isinstance(value, Unknown) else stated(value)


def _words(value: Value[tuple[str, ...]]) -> tuple[str, ...]:
    return value.value if isinstance(value, Known) else () if value is None else (f"<{value.text}>",)


def _source(source: Value[str], kind: str, folder: Path) -> Any:
    path = _plain(source)
    return (
        posixpath.normpath(f"{folder}/{path}") if kind == "bind" and path and not path.startswith(("/", "<")) else path
    )
