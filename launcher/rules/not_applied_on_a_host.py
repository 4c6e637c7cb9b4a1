"""Target local does not apply some fields that the job states.

**Why it matters**: the job is a process of this host, without a container: no image, user or limits of its own
are made for it. CPUs, memory and /dev/shm are compared with the host's, which nothing enforces.

**Example**:

```yaml
target: local
user: "1000"
```

**Use instead**:

```yaml
target: docker
user: "1000"
```

**Fix**: nothing has to be changed: the fields are in effect on the other targets.

**References**: docs/local.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan

CODE = "TL404"
NAME = "not-applied-on-a-host"
SEVERITY = Severity.INFO
_CONTAINERS_OWN = ("image", "pull_policy", "image_entrypoint", "user", "group_add", "ulimits", "labels")
_ONLY_COMPARED = ("resources.cpus", "resources.memory", "shm_size")


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield the one info that lists the stated fields without effect."""
    job = plan.job
    if plan.target_record.starts_container:
        return
    stated = [each for each in _CONTAINERS_OWN if each in job.origins]
    stated += ["read_only"] * job.read_only
    stated += [f"mounts[{index}].read_only" for index, mount in enumerate(job.mounts) if mount.read_only]
    compared = [each for each in _ONLY_COMPARED if each in job.origins]
    said = [f"target local does not apply {', '.join(stated)}"] * bool(stated)
    no_limit = f"{'is' if len(compared) == 1 else 'are'} no limit here, only compared with the host"
    said += [f"{', '.join(compared)} {no_limit}"] * bool(compared)
    if not said:
        return
    first = (stated or compared)[0]
    yield Diagnostic(
        CODE,
        "; ".join(said),
        "run it with `--target docker` where they matter",
        why="the job is a process of this host, without a container",
        severity=SEVERITY,
        span=job.span("image") or job.span(first),
        field="image" if "image" in stated else first,
    )
