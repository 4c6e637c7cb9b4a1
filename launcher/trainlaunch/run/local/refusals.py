"""What keeps a local run from being started, stopped, or called as it shall be."""

from __future__ import annotations

import signal

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import ContainerInfo
from trainlaunch.run.base.run_query import NAME_TAKEN, held_by_same_job

NO_PERMISSION = "TL502"
NOT_STARTED = "TL508"


def name_taken(plan: LaunchPlan, holder: ContainerInfo) -> Diagnostic:
    """Return the error for a name that another run holds (TL506)."""
    if holder.job == plan.job.name:
        return held_by_same_job(holder, plan.name)
    return Diagnostic(
        code=NAME_TAKEN,
        message=f"the name {plan.name} is taken by a local run of job {holder.job}",
        why="a run's name is unique on a host",
        fix=f"give `--name {plan.name}-2`, or end the other one with `trainlaunch down {holder.job}`",
    )


def not_started(plan: LaunchPlan, problem: str) -> Diagnostic:
    return Diagnostic(
        code=NOT_STARTED,
        message=f"local run {plan.name} could not be started",
        why=f"the system says: {problem.splitlines()[-1]}",
        fix="correct working_dir, or what that line names",
    )


def not_ours(run: ContainerInfo, number: int) -> Diagnostic:
    return Diagnostic(
        code=NO_PERMISSION,
        message=f"local run {run.name} can't be sent {signal.Signals(number).name}",
        why=f"its first process {run.pid} has become another user's, as under sudo",
        fix=f"end it as that user: `sudo kill {run.pid}`",
    )
