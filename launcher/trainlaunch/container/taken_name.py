"""What the text of `docker run` says where its container's name is taken: an engine's own words name no way out."""

from __future__ import annotations

from trainlaunch.plan.launch_plan import LaunchPlan


def taken_name(plan: LaunchPlan) -> str:
    """Return the sentence; a run that `up` left, ended or not, holds the name until it is removed."""
    return (
        f"the name {plan.name} is taken: trainlaunch down {plan.job.name} ends and removes a run that up left, "
        f"docker rm {plan.name} another container; render --name gives this one another name"
    )
