"""What /dev/shm needs and what the processes are estimated to use exceed the memory limit together.

**Why it matters**: the kernel kills the job at the limit (exit 137). The processes' part is an estimate per
rank and worker, without model and data, so this is a warning.

**Example**:

```yaml
resources: {memory: 1Gi}
data_loader:
  num_workers: 4
  batch_size: 128
  sample: {shape: [3, 224, 224], dtype: float32}
```

**Use instead**:

```yaml
resources: {memory: 4Gi}
data_loader:
  num_workers: 4
  batch_size: 128
  sample: {shape: [3, 224, 224], dtype: float32}
```

**Fix**: type the memory limit of the message after a run has shown what the processes take; no result depends on it.

**References**: kernel Documentation/admin-guide/cgroup-v2.rst (shmem is charged to the group); docs/sizing.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.memory import CHARGED, enough_memory
from launcher.units import format_size, human_size

CODE = "TL204"
NAME = "working-set-over-memory"
SEVERITY = Severity.WARNING


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning where the need and the estimate are over the limit together."""
    job, shm, memory = plan.job, plan.shm, plan.memory
    if memory.limit is None or shm.need + memory.working_set.value <= memory.limit:
        return
    fewer = ", or fewer data_loader.num_workers" if shm.workers else ""
    yield Diagnostic(
        CODE,
        f"/dev/shm {human_size(shm.need)} and the processes' estimated {human_size(memory.working_set.value)} "
        f"exceed resources.memory {format_size(memory.limit)}",
        f"set resources.memory to {format_size(enough_memory(plan))}{fewer}",
        why=CHARGED,
        severity=SEVERITY,
        span=job.span("resources.memory"),
        field="resources.memory",
    )
