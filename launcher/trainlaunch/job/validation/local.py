"""Checks what this host can't do for a process that runs on it without a container."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from trainlaunch.job.host_paths import is_mapped, names
from trainlaunch.job.validation.context import ValidationContext, cannot
from trainlaunch.job.validation.engines import check_engine_fields
from trainlaunch.job.validation.shared import check_one_node, check_shared

_WHY = "a process of this host sees the host's own paths; nothing is mounted for it"
_BINDS = frozenset({"bind", "code"})
_FIX = "set this host's own paths in target_overrides.local, with mounts: [] or the binds that are left"


def check(job: ValidationContext) -> None:
    """Report each field of the job file that this host does not support, and each mount that nothing leads to."""
    check_shared(job)
    check_one_node(job)
    check_engine_fields(job)
    for field, mount in job.mounts():
        if not _is_in_place(mount):
            _check_mount(job, field, mount)


def _is_in_place(mount: Mapping[str, Any]) -> bool:
    """Whether the target is the source itself, so that the job finds there what a container would."""
    source = str(mount.get("source") or "")
    return mount.get("type") in _BINDS and posixpath.normpath(source) == posixpath.normpath(str(mount.get("target")))


def _check_mount(job: ValidationContext, field: str, mount: Mapping[str, Any]) -> None:
    kind, target = mount.get("type"), str(mount.get("target"))
    if kind not in _BINDS:
        cannot(job, field, f"{kind} mounts, and {field} asks for one at {target}", why=_WHY, fix=_FIX)
        return
    unmapped = [each for each, text in _texts(job) if names(text, target)]
    if unmapped:
        cannot(job, field, f"{target} of {field}, and {unmapped[0]} names it", why=_WHY, fix=_FIX)
    elif not any(is_mapped(each, target) for each in _mapped_texts(job)):
        cannot(
            job,
            field,
            f"{target} of {field}; working_dir and arguments are mapped to its source, and none is below it",
            why=_WHY,
            fix=_FIX,
        )


def _mapped_texts(job: ValidationContext) -> list[str]:
    """Return the texts in which a path is mapped."""
    return [*(each for _, each in job.arguments()), *filter(None, map(job.value, ("working_dir", "checkpoint_dir")))]


def _texts(job: ValidationContext) -> Iterator[tuple[str, str]]:
    """Yield the texts in which a path would stay as it is, each with its field."""
    targets = [str(each.get("target")) for _, each in job.entries("mounts")]
    for field, text in job.arguments():
        if not any(is_mapped(text, target) for target in targets):
            yield field, text
    yield "script", str(job.value("script") or "")
    yield from job.entries("env")
