"""Checks what an image can't hold."""

from __future__ import annotations

import re

from trainlaunch.job.validation.context import ValidationContext, cannot
from trainlaunch.job.validation.engines import check_text, mounts_of, refuse_characters

_LINE = "an instruction of a Dockerfile is one line"
_COPY = "COPY takes it for a pattern or a variable"


def check(job: ValidationContext) -> None:
    """Report each stated field that neither a Dockerfile nor the line that starts its image has a word for."""
    check_text(job)
    image = job.value("image")
    name = str(image or "").rsplit("/", 1)[-1]
    if image and "@" not in name and (":" not in name or name.endswith(":latest")):
        fix = "write the tag of a release, or a digest (name@sha256:…)"
        cannot(
            job, "image", f"base without a fixed tag ({image})", fix=fix, why="the next build would be another image"
        )
    for name, secret in (job.value("secrets") or {}).items():
        source = secret.get("env") if isinstance(secret, dict) else None
        if source not in (None, name):
            what = f"variable {name} that another one fills (secrets.{name}.env {source})"
            why = "the line that starts the image passes variables on by their own names; a value would show in it"
            cannot(job, f"secrets.{name}.env", what, fix=f"write env: {name}", why=why)
    refuse_characters(job, r"[\x00-\x08\x0a-\x1f\x7f]", _LINE, ("env.", "labels.", "working_dir", "mounts."))
    for index, mount in mounts_of(job):
        source, target = str(mount.get("source") or "."), str(mount.get("target"))
        copied = mount.get("type") in {"bind", "code"} and not source.startswith("/")
        odd = re.search(r"[*?\[\]$\\]", source + target) if copied else None
        if odd:
            cannot(
                job,
                f"mounts.{index}",
                f"way to copy a path with {odd[0]} (mounts.{index})",
                fix="rename the folder",
                why=_COPY,
            )
