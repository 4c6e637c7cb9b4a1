"""Checks what the chosen target can't say: an error with the nearest equivalent, never a dropped field."""

from __future__ import annotations

from launcher.job.validation.fields import Checked


def check_target(job: Checked) -> None:
    """Report each stated field that the target has no word for."""
    job.target_record.module("launcher.job.validation").check(job)
