"""The DataLoaders need more /dev/shm than the container has memory.

**Why it matters**: /dev/shm is charged to the memory limit, so no shm_size can help.

**Example**:

```yaml
resources: {memory: 1Gi}
data_loader:
  num_workers: 8
  batch_size: 256
  sample: {shape: [3, 224, 224], dtype: float32}
```

**Use instead**:

```yaml
resources: {memory: 6Gi}
data_loader:
  num_workers: 8
  batch_size: 256
  sample: {shape: [3, 224, 224], dtype: float32}
```

**Fix**: type the memory limit of the message, or lower num_workers or batch_size; the job can't run as it is.

**References**: kernel Documentation/admin-guide/cgroup-v2.rst (shmem is charged to the group); docs/sizing.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.memory import CHARGED, enough_memory
from launcher.units import format_size, human_size

CODE = "TL203"
NAME = "need-over-memory"
SEVERITY = Severity.ERROR
LARGEST_SIZE = 2**60


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error where the need is over what any machine has, and where it is over the job's own limit."""
    job, shm, limit = plan.job, plan.shm, plan.memory.limit
    if shm.size.value > LARGEST_SIZE:
        yield Diagnostic(
            CODE,
            f"the DataLoaders need {human_size(shm.need)} of /dev/shm, {human_size(LARGEST_SIZE)} can be asked for",
            "correct data_loader.sample and batch_size: a shape has no batch in it",
            why="engines and clusters count bytes in 64 bits, and take more for a negative number",
            severity=SEVERITY,
            span=job.span("data_loader"),
            field="data_loader",
        )
    if limit is not None and shm.need >= limit:
        yield Diagnostic(
            CODE,
            f"the DataLoaders need {human_size(shm.need)} of /dev/shm, resources.memory is {format_size(limit)}",
            f"set resources.memory to {format_size(enough_memory(plan))}, or lower data_loader.num_workers "
            f"(now {shm.most_workers}) or batch_size",
            why=CHARGED,
            severity=SEVERITY,
            span=job.span("resources.memory"),
            field="resources.memory",
        )
