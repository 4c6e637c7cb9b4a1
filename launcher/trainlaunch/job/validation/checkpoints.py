"""Checks that what one attempt saves is there for the next."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from trainlaunch.job.validation.fields import Checked
from trainlaunch.job.values.scalars import BAD

VARIABLE = "TRAINLAUNCH_CHECKPOINT_DIR"
_LASTING = ("bind", "volume", "pvc")


def check_checkpoints(job: Checked) -> None:
    """Report a checkpoint_dir that is on no mount, or on one that doesn't outlive an attempt or can't be written."""
    folder = job.value("checkpoint_dir")
    if folder is None:
        if job.value("checkpoint_bytes") is not None:
            fix = "add checkpoint_dir: with the folder that they are written to, or delete checkpoint_bytes"
            job.add("TL106", "checkpoint_bytes", "checkpoint_dir is missing, and checkpoint_bytes is stated", fix=fix)
        return
    for place in ("env", "secrets"):
        if VARIABLE in (job.value(place) or {}):
            message = f"{VARIABLE} is the variable of checkpoint_dir"
            job.add("TL109", f"{place}.{VARIABLE}", message, fix=f"delete {place}.{VARIABLE}")
    _check_mount(job, posixpath.normpath(folder))


def _check_mount(job: Checked, folder: str) -> None:
    around = _around(job, folder)
    why = "an attempt starts in a new container, and what the one before wrote elsewhere is gone with it"
    fix = f"mount a bind, volume or pvc at {folder}, or at a folder above it"
    if around is None:
        job.add("TL109", "checkpoint_dir", f"checkpoint_dir {folder} is below no mount", fix=fix, why=why)
        return
    kind, target = around.get("type"), around.get("target")
    if kind not in _LASTING:
        message = f"checkpoint_dir {folder} is below the {kind} mount at {target}, which no other attempt sees"
        job.add("TL109", "checkpoint_dir", message, fix=fix, why=why)
    elif around.get("read_only") is True:
        message = f"checkpoint_dir {folder} is below the mount at {target}, which is read-only"
        job.add("TL109", "checkpoint_dir", message, fix=f"delete read_only there, or {fix}")


def _around(job: Checked, folder: str) -> Mapping[str, Any] | None:
    """Return the innermost mount at or above a folder; None where there is none."""
    found: Mapping[str, Any] | None = None
    for mount in job.value("mounts") or ():
        if mount is BAD or BAD in mount.values() or not mount.get("target"):
            continue
        target = posixpath.normpath(mount["target"])
        inner = found is None or len(target) > len(posixpath.normpath(found["target"]))
        if inner and (folder == target or folder.startswith(target.rstrip("/") + "/")):
            found = mount
    return found
