"""How long torchrun lets its ranks save their work: as long as the container itself is given."""

from __future__ import annotations

from trainlaunch.plan.launch_plan import Derived, LaunchPlan
from trainlaunch.units import format_duration

VARIABLE = "PET_SHUTDOWN_TIMEOUT"  # of torchrun 2.13 and later
_OWN = frozenset({VARIABLE, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"})
USUAL = 30  # seconds that torchrun waits by itself, whatever the container is given
_LEFT = 2  # seconds for torchrun to end after its ranks


def shutdown_timeout(plan: LaunchPlan) -> Derived | None:
    """Return the seconds between SIGTERM and SIGKILL of torchrun's ranks; None without torchrun, or where stated."""
    job, starter = plan.job, plan.job.starter
    if job.torchrun is None and not (starter and starter.torch):
        return None
    if _OWN & {*job.env, *job.secrets}:
        return None
    grace = job.stop_grace_period
    text = f"stop_grace_period {format_duration(grace)} − {_LEFT} s"
    return Derived(seconds_for_ranks(grace), text, str(job.origin("stop_grace_period")))


def seconds_for_ranks(grace: int) -> int:
    """Return how many of the container's seconds between SIGTERM and SIGKILL torchrun's ranks get."""
    return max(1, grace - _LEFT)


def shutdown_variables(plan: LaunchPlan) -> tuple[tuple[str, str], ...]:
    """Return the variable that tells torchrun; without it, it kills its ranks after 30 s."""
    timeout = shutdown_timeout(plan)
    return () if timeout is None else ((VARIABLE, str(timeout.value)),)
