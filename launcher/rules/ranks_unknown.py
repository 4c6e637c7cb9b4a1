"""The number of training processes in the container is not one number.

**Why it matters**: /dev/shm and workers are sized per training process. `gpus: all` is a different number on
each machine; two stated numbers must agree.

**Example**:

```yaml
resources: {gpus: all}
```

**Use instead**:

```yaml
resources: {gpus: all}
ranks_per_container: 4
```

**Fix**: type the value of the message: which of the two numbers is meant is the author's to say.

**References**: docs/sizing.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan

CODE = "TL207"
NAME = "ranks-unknown"
SEVERITY = Severity.ERROR


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error where two stated numbers differ; `gpus: all` without one never becomes a plan."""
    job = plan.job
    nproc = job.torchrun.nproc_per_node if job.torchrun else None
    if nproc is None or job.ranks_per_container in (None, nproc):
        return
    yield Diagnostic(
        CODE,
        f"ranks_per_container {job.ranks_per_container} and torchrun.nproc_per_node {nproc} differ",
        f"delete ranks_per_container (trainlaunch would take {nproc})",
        why="torchrun starts nproc_per_node ranks in the container, and /dev/shm is sized for the ranks in it",
        severity=SEVERITY,
        span=job.span("ranks_per_container"),
        field="ranks_per_container",
    )
