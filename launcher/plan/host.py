"""Target local: what of a job has no effect where a process of this host is started instead of a container."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Severity
from launcher.job.spec import JobSpec

NOT_APPLIED = "TL404"
_CONTAINERS_OWN = ("image", "pull_policy", "image_entrypoint", "user", "group_add", "ulimits", "labels")
_ONLY_COMPARED = ("resources.cpus", "resources.memory", "shm_size")


def not_applied(job: JobSpec) -> Diagnostic | None:
    """Return the one finding that lists the stated fields without effect (TL404); None for another target."""
    if job.target != "local":
        return None
    stated = [each for each in _CONTAINERS_OWN if each in job.origins]
    stated += ["read_only"] * job.read_only
    stated += [f"mounts[{index}].read_only" for index, mount in enumerate(job.mounts) if mount.read_only]
    compared = [each for each in _ONLY_COMPARED if each in job.origins]
    also = f"; {', '.join(compared)} {'is' if len(compared) == 1 else 'are'} no limit here, only compared with the host"
    return Diagnostic(
        NOT_APPLIED,
        f"target local does not apply {', '.join(stated)}{also * bool(compared)}",
        "run it with `--target docker` where they matter",
        why="the job is a process of this host, without a container",
        severity=Severity.INFO,
        span=job.span("image"),
        field="image",
    )
