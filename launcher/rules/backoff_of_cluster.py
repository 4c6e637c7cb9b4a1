"""restart.backoff is stated, and on Kubernetes the kind's own controller decides how long it waits.

**Why it matters**: no field of a Job says how long to wait between two attempts: its controller waits 10 s before the
second, 20 s before the third, and so on, at most 6 minutes. A JobSet makes all its pods again at once.

**Example**:

```yaml
target: kubernetes
resources: {cpus: 4, memory: 8Gi}
restart: {max_attempts: 3, backoff: 30s}
```

**Use instead**:

```yaml
target: docker
resources: {cpus: 4, memory: 8Gi}
restart: {max_attempts: 3, backoff: 30s}
```

**Fix**: nothing has to be changed: `up` waits that long on the other targets, so that one file fits all of them.

**References**: kubernetes.io/docs/concepts/workloads/controllers/job, section Pod backoff failure policy.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.units import format_duration

CODE = "TL405"
NAME = "backoff-of-cluster"
SEVERITY = Severity.INFO


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an info with what the kind's controller does instead."""
    job = plan.job
    if job.backoff is None or job.kind is None:
        return
    yield Diagnostic(
        CODE,
        f"restart.backoff {format_duration(job.backoff)} is not in effect on a {job.kind.name}: "
        f"{job.kind.between_attempts}",
        "leave it for the other targets, or delete it",
        why="no field of Kubernetes says how long to wait between two attempts",
        severity=SEVERITY,
        span=job.span("restart.backoff"),
        field="restart.backoff",
    )
