"""The probes of a pod: readiness is the health check, unless something acts on it; liveness ends an unhealthy job."""

from __future__ import annotations

from trainlaunch.job.spec import JobSpec
from trainlaunch.kinds import KINDS

# A probe runs in the job's own cgroup, and gets CPU beside all of its processes: a slow one must end no job.
LEAST_LIVENESS_TIMEOUT = 60
_RECORDS_ONLY = "trap 'exit 0' EXIT # something acts on readiness here, so this check only records\n"


def readiness_text(job: JobSpec, health: str) -> str:
    """Return the readiness command: the health check, which must not fail where readiness decides about the job.

    A queue evicts what is not ready, and a pod that is not ready drops out of the names that its peers look up.
    """
    acted_upon = job.nodes > 1 or job.kubernetes.queue or KINDS[job.kubernetes.kind].acts_on_readiness
    return _RECORDS_ONLY + health if acted_upon else health


def liveness_timeout(job: JobSpec) -> int:
    """Return the seconds that the liveness check may take."""
    return max(LEAST_LIVENESS_TIMEOUT, job.healthcheck.timeout)
