"""CPUs that the plan may count on: the job's own limit, floored to whole CPUs, never the host's count."""

from __future__ import annotations

from launcher.job.spec import JobSpec


def whole_cpus(job: JobSpec) -> int | None:
    """Return whole CPUs of one container, at least 1; None without `resources.cpus`."""
    if job.resources.cpus is None:
        return None
    return max(1, job.resources.cpus // 1000)
