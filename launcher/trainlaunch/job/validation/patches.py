"""Checks a job's patches as far as no text is needed for it."""

from __future__ import annotations

import posixpath
import re

from trainlaunch.formats.docker.flags import Flag, flags_of, takes_shm
from trainlaunch.formats.docker.table import FLAGS
from trainlaunch.job.host_paths import normal_place
from trainlaunch.job.reserved import LABEL_PREFIX
from trainlaunch.job.validation.context import ValidationContext
from trainlaunch.job.values.scalar_reader import BAD
from trainlaunch.sanitize import shorten
from trainlaunch.yamltree.strict import SequenceNode

_NEEDS = {"add": "value", "replace": "value", "test": "value", "move": "from", "copy": "from"}
_ARGUMENTS = "patches.docker.extra_args"
_VOLUME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def check_operations(job: ValidationContext) -> None:
    """Report every operation on Kubernetes' objects that can't be."""
    for path, stated in job.entries("patches.kubernetes"):
        op = stated.get("op", BAD)
        if op is BAD:
            continue
        needed = _NEEDS.get(op)
        if needed and needed not in stated:
            job.add("TL106", path, f"{path}.{needed} is missing; {op} needs it", fix=f"add {needed} to it")
        for other in ("value", "from"):
            if other in stated and other != needed:
                job.add("TL109", f"{path}.{other}", f"{op} takes no {other}", fix=f"delete {path}.{other}")
        if op == "move" and str(stated.get("path")).startswith(f"{stated.get('from')}/"):
            job.add("TL145", path, f"{path} moves a value into itself", fix="correct its path")


def check_flags(job: ValidationContext) -> None:
    """Report every flag of `docker run` that can't be, or that repeats or undoes what the text sets."""
    node = job.node(_ARGUMENTS)
    if not job.value(_ARGUMENTS) or not isinstance(node, SequenceNode):
        return
    before = len(job.report)
    flags = list(flags_of(node, job.report))
    if len(job.report) > before:
        return
    for flag in flags:
        _check_flag(job, flag)


def _check_flag(job: ValidationContext, flag: Flag) -> None:
    value = flag.value or ""
    key = value.partition("=")[0]
    target = flag.mount_target
    job_field = FLAGS[flag.name].job_field
    if job_field is not None:
        _ours(job, flag, job_field)
    elif flag.name == "env" and (
        key in {*(job.value("env") or {}), *(job.value("secrets") or {})} or key.startswith("TRAINLAUNCH_")
    ):
        _ours(job, flag, "secrets" if key in (job.value("secrets") or {}) else "env", f"--env {key}")
    elif flag.name == "label" and (key in (job.value("labels") or {}) or key.startswith(LABEL_PREFIX)):
        _ours(job, flag, "" if key.startswith(LABEL_PREFIX) else "labels", f"--label {key}")
    elif flag.name == "ulimit" and key in (job.value("ulimits") or {}):
        _ours(job, flag, "ulimits", f"--ulimit {key}")
    elif target is not None:
        _check_mount(job, flag, target)


def _check_mount(job: ValidationContext, flag: Flag, target: str) -> None:
    place = normal_place(f"/{target}")
    mounted = {
        posixpath.normpath(each["target"]) for _, each in job.entries("mounts") if each.get("target", BAD) is not BAD
    }
    if job.value("read_only"):
        mounted.add("/tmp")
    source = _relative_source(flag)
    if takes_shm(target):
        _ours(job, flag, "shm_size", f"--{flag.name} on {place}")
    elif place in mounted:
        _ours(job, flag, "mounts", f"--{flag.name} on {place}")
    elif not target.startswith("/"):
        job.add(
            "TL145",
            f"{_ARGUMENTS}.{flag.at}",
            f"--{flag.name} {shorten(flag.value or '')} names no absolute path of the container",
            fix="write the path in the container, starting with /",
        )
    elif source is not None:
        job.add(
            "TL145",
            f"{_ARGUMENTS}.{flag.at}",
            f"--{flag.name} takes {shorten(source)}, a path relative to wherever docker is run",
            fix="write an absolute path, or use mounts, whose relative sources are seen from the job file",
            why="a rendered file is run in another folder than the one that `up` was started in",
        )


def _relative_source(flag: Flag) -> str | None:
    """Return the path that a --volume or --mount takes from the folder that docker is run in, or None."""
    fields = flag.mount_fields
    source, colon, _ = (flag.value or "").partition(":")
    if flag.name == "mount":
        source = fields.get("source", "")
    elif flag.name != "volume" or not colon:
        return None
    named = _VOLUME.fullmatch(source) and fields.get("type") != "bind"
    return None if not source or source.startswith("/") or named else source


def _ours(job: ValidationContext, flag: Flag, field: str, shown_as: str = "") -> None:
    job.add(
        "TL146",
        f"{_ARGUMENTS}.{flag.at}",
        f"{shown_as or f'--{flag.name}'} repeats or undoes what trainlaunch itself sets",
        fix=f"write {field} instead, and delete the flag" if field else "delete the flag",
        why="docker takes the last of two and says nothing, so the plan would no longer be what runs",
    )
