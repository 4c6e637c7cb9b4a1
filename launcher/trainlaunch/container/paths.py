"""Paths of this machine that a job mounts: as a text names them, and as a run resolves them."""

from __future__ import annotations

import os
from pathlib import Path

from trainlaunch.job.spec import Mount
from trainlaunch.plan.launch_plan import LaunchPlan


def bind_source(plan: LaunchPlan, mount: Mount, base: Path | None) -> str:
    """Return a bind's host path; a relative one starts with a dot, seen from `base` (None: the job file's folder)."""
    return host_source(plan, mount.source or ".", base)


def host_source(plan: LaunchPlan, source: str, base: Path | None) -> str:
    """Return a path of this machine as `bind_source` returns a bind's."""
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
    """Return a path of this machine as an absolute one; a relative one is seen from the job file's folder."""
    return source if source.startswith("/") else os.path.normpath(Path(plan.job.path).absolute().parent / source)


def has_relative_bind(plan: LaunchPlan) -> bool:
    """Return whether the text depends on the folder that it is run in, by a bind or the file of a secret."""
    if not plan.target_record.mounts_host_paths:
        return False
    sources = [mount.source or "." for mount in plan.job.mounts if mount.type == "bind"]
    sources += [each.file for each in plan.job.secrets.values() if each.file is not None]
    return any(not source.startswith("/") for source in sources)
