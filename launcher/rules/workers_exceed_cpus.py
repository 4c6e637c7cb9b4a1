"""The stated workers of one loader, over all ranks, outnumber resources.cpus.

**Why it matters**: workers beyond the CPUs only take turns, and each costs memory and prefetch_factor batches
of /dev/shm.

**Example**:

```yaml
resources: {cpus: 2}
data_loader: {num_workers: 8}
```

**Use instead**:

```yaml
resources: {cpus: 8}
data_loader: {num_workers: 8}
```

**Fix**: type the number of the message, or delete num_workers. Not without a look: a data set that draws random numbers
in its workers draws others with another number of them.

**References**: docs/sizing.md; torch warns too, from the process's affinity alone and not from the CPU quota.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.cpu_budget import shares_cpus, whole_cpus
from launcher.plan.launch_plan import LaunchPlan
from launcher.units import counted

if TYPE_CHECKING:
    from launcher.rules.written.model import Finding, WrittenFile

CODE = "TL206"
NAME = "workers-exceed-cpus"
SEVERITY = Severity.WARNING
GROUP = "defects"


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning where the stated workers of one loader, over all ranks, outnumber the CPUs."""
    job, ranks = plan.job, plan.ranks.value
    cpus = whole_cpus(job) or 0
    if not shares_cpus(plan):
        return
    yield Diagnostic(
        CODE,
        f"{counted(plan.stated_processes, 'DataLoader worker')} ({counted(ranks, 'rank')}) share resources.cpus {cpus}",
        f"set data_loader.num_workers to {max(1, cpus // ranks)}, or delete it",
        why="workers beyond the CPUs only take turns, and each costs memory",
        severity=SEVERITY,
        span=job.span("data_loader.num_workers"),
        field="data_loader.num_workers",
    )


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each container of a written text whose stated workers outnumber its CPU limit."""
    from launcher.formats.workload import stated
    from launcher.rules.written.evidence import workers_of
    from launcher.rules.written.model import KUBERNETES, Finding, at

    for written in file.containers:
        workload = written.workload
        workers, milli = workers_of(written), stated(workload.cpus)
        if workers is None or not milli or workers * 1000 <= milli or workers == 1:
            continue
        if workload.format == KUBERNETES and at(written.own, "resources", "limits", "cpu") is None:
            continue  # a request is no limit
        cpus = max(1, milli // 1000)
        yield Finding(
            Diagnostic(
                CODE,
                f"{counted(workers, 'DataLoader worker')} share a limit of {milli / 1000:g} CPUs",
                f"state {counted(cpus, 'worker')} at most, or raise the limit",
                why="workers beyond the CPUs only take turns, and each costs memory",
                severity=SEVERITY,
                span=workload.cpus.span if workload.cpus is not None else workload.span,
                field=workload.place,
            ),
            NAME,
        )
