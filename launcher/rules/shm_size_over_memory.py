"""shm_size is as large as resources.memory, or larger.

**Why it matters**: /dev/shm is charged to the container's memory limit; the kernel kills the job (exit 137)
before the mount is full.

**Example**:

```yaml
shm_size: 8Gi
resources: {memory: 6Gi}
```

**Use instead**:

```yaml
shm_size: 3Gi
resources: {memory: 6Gi}
```

Without shm_size trainlaunch computes one that fits.

**Fix**: delete shm_size, or type the limit or the size of the message; no result of the training depends on either.

**References**: kernel Documentation/admin-guide/cgroup-v2.rst (shmem is charged to the group); docs/sizing.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.memory import CHARGED, enough_memory
from launcher.units import MIB, format_size, round_up

if TYPE_CHECKING:
    from launcher.rules.written.model import Finding, WrittenFile

CODE = "TL201"
NAME = "shm-size-over-memory"
SEVERITY = Severity.ERROR
GROUP = "defects"


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error where the mount may grow to the memory limit; where the need does, need-over-memory says so."""
    job, shm, limit = plan.job, plan.shm, plan.memory.limit
    if limit is None or shm.size.value < limit or shm.need >= limit:
        return
    stated = job.shm_size is not None
    fix = f"set resources.memory to {format_size(enough_memory(plan))}"
    if stated and not shm.unsized:
        least = format_size(round_up(max(shm.multi_epoch, 64 * MIB), MIB))
        fix += f", or shm_size to at least {least}, or delete shm_size"
    elif stated:
        fix += f", or shm_size to {format_size(round_up(limit // 2, MIB))}, or delete shm_size"
    yield Diagnostic(
        CODE,
        f"shm_size {format_size(shm.size.value)}{'' if stated else ' (automatic)'} does not fit in "
        f"resources.memory {format_size(limit)}",
        fix,
        why=CHARGED,
        severity=SEVERITY,
        span=job.span("shm_size" if stated else "resources.memory"),
        field="shm_size",
    )


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each container of a written text whose /dev/shm may grow to its memory limit."""
    from launcher.formats.workload import SIZE, TMPFS, Known
    from launcher.rules.written.evidence import size_text
    from launcher.rules.written.model import Finding

    for written in file.containers:
        workload, size, limit = written.workload, written.workload.shm.size, written.workload.memory
        if workload.shm.kind not in {SIZE, TMPFS} or not isinstance(size, Known) or not isinstance(limit, Known):
            continue
        if size.value < limit.value or limit.value < MIB:  # a limit below one MiB is another mistake
            continue
        more = size_text(round_up(size.value + max(size.value // 2, 2 * MIB), MIB), written)
        less = size_text(round_up(max(limit.value // 2, MIB), MIB), written)
        yield Finding(
            Diagnostic(
                CODE,
                f"/dev/shm of {size.text} does not fit in the memory limit {limit.text}",
                f"set the memory limit to {more}, or the size of /dev/shm to at most {less}",
                why=CHARGED,
                severity=SEVERITY,
                span=size.span,
                field=workload.place,
            ),
            NAME,
        )
