"""Variables that tell a job its attempt, and how long torchrun lets its ranks save their work."""

from __future__ import annotations

from trainlaunch.container.paths import absolute_bind
from trainlaunch.job.host_paths import host_path
from trainlaunch.kinds import KINDS
from trainlaunch.plan.launch_plan import Derived, LaunchPlan
from trainlaunch.units import format_duration

ATTEMPT = "TRAINLAUNCH_ATTEMPT"
RESTARTS = "TRAINLAUNCH_RESTARTS"  # how often the cluster started it again; the preflight makes ATTEMPT of it

VARIABLE = "PET_SHUTDOWN_TIMEOUT"  # of torchrun 2.13 and later
_OWN = frozenset({VARIABLE, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"})
USUAL = 30  # seconds that torchrun waits by itself, whatever the container is given
_LEFT = 2  # seconds for torchrun to end after its ranks


def checkpoint_dir(plan: LaunchPlan) -> str | None:
    """Return the folder as the job sees it: a process of this host sees the source of its bind."""
    job = plan.job
    if job.checkpoint_dir is None or plan.target_record.starts_container:
        return job.checkpoint_dir
    binds = {mount.target: absolute_bind(plan, mount) for mount in job.mounts if mount.type == "bind"}
    return host_path(job.checkpoint_dir, binds)


def attempt_variables(plan: LaunchPlan, attempt: int) -> dict[str, str]:
    """Return the variable that tells an attempt's number, from 1; none where the job sets it itself."""
    return {} if ATTEMPT in {*plan.job.env, *plan.job.secrets} else {ATTEMPT: str(attempt)}


def restarts_field(plan: LaunchPlan) -> str:
    """Return the field of a pod from which an attempt learns its number on a cluster, `` where it doesn't.

    Only a job that goes on from a checkpoint asks, and not one that sets one of both variables itself.
    """
    job = plan.job
    label = KINDS[job.kubernetes.kind].restarts_label if plan.target_record.has_kinds else ""
    resumes = job.checkpoint_dir is not None and job.max_attempts > 1
    if not label or not resumes or {ATTEMPT, RESTARTS} & {*job.env, *job.secrets}:
        return ""
    return f"metadata.labels['{label}']"


def shutdown_timeout(plan: LaunchPlan) -> Derived | None:
    """Return the seconds between SIGTERM and SIGKILL of torchrun's ranks; None without torchrun, or where set."""
    job, starter = plan.job, plan.job.starter
    if job.torchrun is None and not (starter and starter.torch):
        return None
    if _OWN & {*job.env, *job.secrets}:
        return None
    grace = job.stop_grace_period
    return Derived(
        seconds_for_ranks(grace),
        f"stop_grace_period {format_duration(grace)} − {_LEFT} s",
        str(job.origin("stop_grace_period")),
    )


def seconds_for_ranks(grace: int) -> int:
    """Return how many of the container's seconds between SIGTERM and SIGKILL torchrun's ranks get."""
    return max(1, grace - _LEFT)


def shutdown_variables(plan: LaunchPlan) -> tuple[tuple[str, str], ...]:
    """Return the variable that tells torchrun; without it, it kills its ranks after 30 s."""
    timeout = shutdown_timeout(plan)
    return () if timeout is None else ((VARIABLE, str(timeout.value)),)
