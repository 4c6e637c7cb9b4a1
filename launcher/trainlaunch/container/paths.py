"""Paths that a job mounts: as a text names them, as a run resolves them, as a text in their repository names them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from trainlaunch.job.host_paths import below_repository
from trainlaunch.job.spec import Mount
from trainlaunch.plan.launch_plan import LaunchPlan


def bind_source(plan: LaunchPlan, mount: Mount, base: Path | None) -> str:
    """Return a bind's host path; a relative one starts with a dot, seen from `base` (None: the job file's folder)."""
    return host_source(plan, mount.source or ".", base)


def host_source(plan: LaunchPlan, source: str, base: Path | None) -> str:
    """Return a path of this host as `bind_source` returns a bind's."""
    if source.startswith("/"):
        return source
    if base is not None:
        source = os.path.relpath(Path(plan.job.path).parent / source, base)
    source = os.path.normpath(source)
    return source if source == "." or source.startswith("../") or source == ".." else f"./{source}"


def absolute_bind(plan: LaunchPlan, mount: Mount) -> str:
    """Return a bind's absolute host path, which a run mounts."""
    return absolute_source(plan, mount.source or ".")


def absolute_source(plan: LaunchPlan, source: str) -> str:
    """Return a path of this host as an absolute one; a relative one is seen from the job file's folder."""
    return source if source.startswith("/") else os.path.normpath(Path(plan.job.path).absolute().parent / source)


def has_relative_bind(plan: LaunchPlan) -> bool:
    """Return whether the text depends on the folder that it is run in, by a bind or the file of a secret."""
    if not plan.target_record.mounts_host_paths:
        return False
    sources = [mount.source or "." for mount in plan.job.mounts if mount.type == "bind"]
    sources += [each.file for each in plan.job.secrets.values() if each.file is not None]
    return any(not source.startswith("/") for source in sources)


class Checkout(NamedTuple):
    """A folder of the repository that a container sees: its path from the root, `.` for all of it."""

    path: str
    target: str
    read_only: bool


def checkouts(plan: LaunchPlan) -> tuple[Checkout, ...]:
    """Return the binds whose source is a part of the repository, in the job's order."""
    return tuple(
        Checkout(below_repository(plan.job.path, each.source or ".") or ".", each.target, each.read_only)
        for each in plan.job.mounts
        if _is_checkout(each)
    )


def machine_mounts(plan: LaunchPlan) -> tuple[Mount, ...]:
    """Return the other mounts that are none in memory: paths of the machine, volumes, scratch folders."""
    return tuple(each for each in plan.job.mounts if each.type != "tmpfs" and not _is_checkout(each))


def _is_checkout(mount: Mount) -> bool:
    return mount.type == "bind" and not (mount.source or ".").startswith("/")
