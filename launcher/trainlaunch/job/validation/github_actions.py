"""Checks what a job of GitHub Actions does not support."""

from __future__ import annotations

from trainlaunch.job.validation.context import ValidationContext, cannot
from trainlaunch.job.validation.engines import check_job_of_ci, check_text, refuse_characters

_GRACE = "a cancelled job is stopped with SIGINT, 7.5 s later SIGTERM, and killed after 10 s"
_OPTIONS = "the runner takes container.options apart by other rules than a shell where one of these stands"
_IDS = "an id begins with a letter or _"
_VOLUMES = "an entry of container.volumes is SOURCE:TARGET:MODE"


def check(job: ValidationContext) -> None:
    """Report each stated field that a GitHub job has no key for."""
    check_text(job)
    check_job_of_ci(job, _GRACE)
    name = job.value("name")
    if name and not name[0].isalpha():
        cannot(job, "name", f"job whose id begins with a digit ({name})", fix=f"write job-{name}", why=_IDS)
    refuse_characters(job, r"[\\$`\"'\x00-\x1f\x7f]", _OPTIONS, ("labels.",))
    refuse_characters(job, r"[:\\$`\"'\x00-\x1f\x7f]", _VOLUMES, ("mounts.",))
