"""CPUs that the plan may count on: the job's own limit, floored to whole CPUs, never the host's count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlaunch.job.spec import JobSpec

if TYPE_CHECKING:
    from trainlaunch.plan.launch_plan import LaunchPlan


def whole_cpus(job: JobSpec) -> int | None:
    """Return whole CPUs of one container, at least 1; None without `resources.cpus`."""
    if job.resources.cpus is None:
        return None
    return max(1, job.resources.cpus // 1000)


def shares_cpus(plan: LaunchPlan) -> bool:
    """Return whether the stated workers of one loader, over all ranks, outnumber `resources.cpus`, which is said."""
    cpus = whole_cpus(plan.job)
    return cpus is not None and plan.stated_processes > cpus
