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
from typing import TYPE_CHECKING

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.memory import CHARGED, enough_memory
from launcher.units import GIB, MIB, format_size, human_size, round_up

if TYPE_CHECKING:
    from launcher.rules.written.model import Finding, WrittenFile

CODE = "TL204"
NAME = "working-set-over-memory"
SEVERITY = Severity.WARNING
GROUP = "defects"
_BESIDE_GPU, _BESIDE_CPU = 2 * GIB, 512 * MIB  # what one training process is estimated to use


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


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each container that trains whose memory limit leaves a process no room beside /dev/shm."""
    from launcher.formats.workload import SIZE, TMPFS, Known
    from launcher.rules.written.evidence import has_gpu, size_text, trains
    from launcher.rules.written.model import Finding

    for written in file.containers:
        workload, size, limit = written.workload, written.workload.shm.size, written.workload.memory
        if workload.shm.kind not in {SIZE, TMPFS} or not isinstance(size, Known) or not isinstance(limit, Known):
            continue
        beside = _BESIDE_GPU if has_gpu(workload) else _BESIDE_CPU
        left = limit.value - size.value
        if min(size.value, limit.value) < MIB:  # another mistake
            continue
        if left <= 0 or left >= beside or not trains(written):
            continue
        more = size_text(round_up(size.value + 2 * beside, MIB), written)
        yield Finding(
            Diagnostic(
                CODE,
                f"beside a full /dev/shm of {size.text} the memory limit {limit.text} leaves {human_size(left)}; one "
                f"training process takes about {human_size(beside)}",
                f"set the memory limit to {more}",
                why=CHARGED,
                severity=SEVERITY,
                span=limit.span,
                field=workload.place,
            ),
            NAME,
        )
