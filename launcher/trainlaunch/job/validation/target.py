"""Checks what the chosen target does not support: an error with the nearest equivalent, never a dropped field."""

from __future__ import annotations

from trainlaunch.job.validation.fields import Checked


def check_target(job: Checked) -> None:
    """Report each stated field that the target does not support."""
    job.target_record.module("trainlaunch.job.validation").check(job)
