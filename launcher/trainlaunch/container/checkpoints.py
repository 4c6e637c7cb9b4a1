"""Where an attempt leaves what the next one goes on from, and which attempt it is."""

from __future__ import annotations

from trainlaunch.container.paths import absolute_bind
from trainlaunch.job.host_paths import host_path
from trainlaunch.kinds import KINDS
from trainlaunch.plan.launch_plan import LaunchPlan

ATTEMPT = "TRAINLAUNCH_ATTEMPT"
RESTARTS = "TRAINLAUNCH_RESTARTS"  # how often the cluster started it again; the preflight makes ATTEMPT of it


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
