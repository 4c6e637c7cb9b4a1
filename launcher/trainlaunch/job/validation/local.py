"""Checks what this host can't do for a process that runs on it without a container."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from trainlaunch.job.host_paths import is_mapped, names
from trainlaunch.job.validation.context import ValidationContext, cannot
from trainlaunch.job.validation.engines import check_engine_fields
from trainlaunch.job.validation.shared import check_one_node, check_shared
from trainlaunch.job.values.scalar_reader import BAD

_WHY = "a process of this host sees the host's own paths; nothing is mounted for it"
_BINDS = frozenset({"bind", "code"})
_FIX = "state this host's own paths in target_overrides.local, with mounts: [] or the binds that are left"


def check(job: ValidationContext) -> None:
    """Report each stated field that this host does not support, and each mount that nothing leads to."""
    check_shared(job)
    check_one_node(job)
    check_engine_fields(job)
    for index, mount in enumerate(job.value("mounts") or ()):
        if mount is not BAD and BAD not in mount.values() and not _is_in_place(mount):
            _check_mount(job, index, mount)


def _is_in_place(mount: Mapping[str, Any]) -> bool:
    """Whether the target is the source itself, so that the job finds there what a container would."""
    source = str(mount.get("source") or "")
    return mount.get("type") in _BINDS and posixpath.normpath(source) == posixpath.normpath(str(mount.get("target")))


def _check_mount(job: ValidationContext, index: int, mount: Mapping[str, Any]) -> None:
    kind, target = mount.get("type"), str(mount.get("target"))
    if kind not in _BINDS:
        cannot(
            job, f"mounts.{index}", f"{kind} mounts, and mounts.{index} asks for one at {target}", why=_WHY, fix=_FIX
        )
        return
    unmapped = [field for field, text in _texts(job) if names(text, target)]
    if unmapped:
        cannot(job, f"mounts.{index}", f"{target} of mounts.{index}, and {unmapped[0]} names it", why=_WHY, fix=_FIX)
    elif not any(is_mapped(each, target) for each in _mapped_texts(job)):
        what = f"{target} of mounts.{index}; working_dir and arguments are mapped to its source, and none is below it"
        cannot(job, f"mounts.{index}", what, why=_WHY, fix=_FIX)


def _arguments(job: ValidationContext) -> list[tuple[str, str]]:
    return [(f"command.{at}", each) for at, each in enumerate(job.value("command") or ()) if isinstance(each, str)]


def _mapped_texts(job: ValidationContext) -> list[str]:
    """Return the texts in which a path is mapped."""
    return [*(each for _, each in _arguments(job)), *filter(None, map(job.value, ("working_dir", "checkpoint_dir")))]


def _texts(job: ValidationContext) -> Iterator[tuple[str, str]]:
    """Yield the texts in which a path would stay as it is, each with its field."""
    targets = [str(each.get("target")) for each in job.value("mounts") or () if each is not BAD]
    for field, text in _arguments(job):
        if not any(is_mapped(text, target) for target in targets):
            yield field, text
    yield "script", str(job.value("script") or "")
    for name, value in (job.value("env") or {}).items():
        yield f"env.{name}", str(value)
