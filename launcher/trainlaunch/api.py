"""The functions that other programs call: a scheduler that renders its own jobs, a service that checks a repository.

What stands here stays: names, parameters and what they raise change only with a major version. Each command of the
command line is made of the same functions. Nothing here asks an engine, reads a clock or the environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from trainlaunch.committed import check_renderings as _check
from trainlaunch.committed.comparison import Checked
from trainlaunch.diagnostics import Diagnostic, Severity, Span
from trainlaunch.errors import JobFileRejected, RenderingDisagrees, UsageError
from trainlaunch.job.spec import JobSpec
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy import read_job
from trainlaunch.render import render as _render
from trainlaunch.repository.root import Reach
from trainlaunch.rules import check_plan, plan_job
from trainlaunch.verify import verified, verify

__all__ = [
    "Checked",
    "Diagnostic",
    "JobFileRejected",
    "JobSpec",
    "LaunchPlan",
    "RenderingDisagrees",
    "Severity",
    "Span",
    "UsageError",
    "check",
    "findings",
    "plan",
    "read_job",
    "render",
    "verify",
]


def plan(job: JobSpec, *, name: str | None = None) -> LaunchPlan:
    """Return every number of a job, decided; `name` fixes its name.

    Sizes are bytes, durations seconds. Raises JobFileRejected with every error that the numbers have.
    """
    return plan_job(job, name=name)


def findings(plan: LaunchPlan) -> tuple[Diagnostic, ...]:
    """Return what `trainlaunch plan` says of a plan: warnings and infos."""
    return check_plan(plan)


def render(plan: LaunchPlan, *, base: Path | None = None) -> str:
    """Return the text of the plan's target, read back and proved to say what the plan says.

    `base` is the folder that the text will lie in, to which relative binds are then relative; None keeps them relative
    to the job file's. Raises JobFileRejected for a patch of the job that can't be, and ValueError for target local,
    which has no text.
    """
    if not plan.target_record.has_text:
        raise ValueError(f"target {plan.target} renders no file")
    return verified(plan, _render(plan, base=base), base=base)


def check(paths: Sequence[Path], *, policy: Path | None = None, allowed: Sequence[Path] = ()) -> Iterator[Checked]:
    """Yield how each committed rendered file in `paths`, files or folders, compares with what its job file renders now.

    `policy` takes the place of those that rendered files and job files name, and `allowed` are folders outside of the
    repository into which they may lead. Raises UsageError for what can't be read.
    Many rendered files are shared out among processes forked from this one: call it before threads are started.
    """
    reach = Reach(tuple(each for each in paths if each.is_dir()), tuple(allowed))
    return _check.compare_all(_check.find_renderings(paths, reach=reach).renderings, policy=policy, reach=reach)
