"""Checks what `docker run` does not support."""

from __future__ import annotations

from trainlaunch.job.validation.context import ValidationContext
from trainlaunch.job.validation.engines import ENGINE_MOUNTS, check_engine
from trainlaunch.job.validation.shared import check_one_node, check_shared


def check(job: ValidationContext) -> None:
    """Report each field of the job file that `docker run` has no option for, and flags of the job that undo its own."""
    check_shared(job, instead=ENGINE_MOUNTS)
    check_one_node(job)
    check_engine(job)
    if job.value("patches"):
        from trainlaunch.job.validation.patches import check_flags  # few jobs have some

        check_flags(job)
