"""The readiness check of a pod: the health check, unless something acts on readiness."""

from __future__ import annotations

from launcher.job.spec import JobSpec
from launcher.kinds import KINDS

_RECORDS_ONLY = "trap 'exit 0' EXIT # something acts on readiness here, so this check only records\n"


def readiness_text(job: JobSpec, health: str) -> str:
    """Return the readiness command: the health check, which must not fail where readiness decides about the job.

    A queue evicts what is not ready, and a pod that is not ready drops out of the names that its peers look up.
    """
    acted_upon = job.nodes > 1 or job.kubernetes.queue or KINDS[job.kubernetes.kind].acts_on_readiness
    return _RECORDS_ONLY + health if acted_upon else health
