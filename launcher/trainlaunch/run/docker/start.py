"""Why an engine did not start a container, where its own words need some of ours."""

from __future__ import annotations

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.amd_gpus import INSTALL_AMDGPU, NO_GPU
from trainlaunch.run.base.backend import Started
from trainlaunch.run.base.wording import NAME_TAKEN, held_by_same_job
from trainlaunch.run.docker.checks import INSTALL_TOOLKIT
from trainlaunch.run.docker.client import EngineRefused


def start_refused(refused: EngineRefused) -> TargetUnavailable:
    """Return the error for a container that was not started: TL505 where its GPUs have no driver, else the engine's."""
    amd = "adding custom device" in refused.explanation and "/dev/" in refused.explanation
    if not amd and "could not select device driver" not in refused.explanation:
        return refused
    return TargetUnavailable(
        [
            Diagnostic(
                code=NO_GPU,
                message="the engine has no driver for the GPUs that resources.gpus asks for",
                why=f"the engine says: {refused.explanation.strip()}",
                fix=INSTALL_AMDGPU if amd else INSTALL_TOOLKIT,
            )
        ]
    )


def name_taken(plan: LaunchPlan, holder: Started | None) -> Diagnostic:
    """Return the error for a name that something else holds (TL506)."""
    if holder is not None and holder.job == plan.job.name:
        return held_by_same_job(holder, plan.name)
    other = f"job {holder.job}" if holder is not None and holder.job else "something that trainlaunch did not start"
    name = plan.name if holder is None else holder.name
    return Diagnostic(
        code=NAME_TAKEN,
        message=f"the container name {name} is held by {other}",
        why="a container's name is unique on an engine",
        fix=f"give `--name {plan.name}-2`, or remove the other one with `docker rm {name}`",
    )
