"""Variables that name GPUs which the job does not have."""

from __future__ import annotations

from collections.abc import Iterator

from trainlaunch.diagnostics import Severity
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.rules.base.rule import Problem, plan_rule
from trainlaunch.rules.sources.visible_devices import GrantedGpus, contradictions


@plan_rule("TL351", Severity.WARNING)
def visible_devices_contradict(plan: LaunchPlan) -> Iterator[Problem]:
    """On a host itself they choose among its GPUs, and are right."""
    job, gpus = plan.job, plan.gpus
    if not plan.target_record.starts_container:
        return
    count = None if gpus.all or any("gpu" in each or "mig" in each for each in job.resources.extended) else gpus.count
    granted = GrantedGpus(count, gpus.ids if job.nodes == 1 else None, job.kind is not None)
    for name, message, why in contradictions(job.env, granted):
        fix = f"delete env.{name}" + ("; resources.gpus says which" if job.kind is None else "")
        yield Problem(message, fix, why, f"env.{name}")
