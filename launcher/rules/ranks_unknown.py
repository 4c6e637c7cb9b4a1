"""The number of training processes in the container is not one number.

**Why it matters**: /dev/shm, memory and threads are sized per training process. Two stated numbers must agree, a
command that calls `accelerate launch` or `mpirun` without a number starts as many as it finds, and `gpus: all`
is a different number on each machine.

**Example**:

```yaml
command: [torchrun, --nproc_per_node, "8", train.py]
ranks_per_container: 4
```

**Use instead**:

```yaml
command: [torchrun, --nproc_per_node, "{nproc_per_node}", train.py]
ranks_per_container: 4
```

**Fix**: type the value of the message: which of the two numbers is meant is the author's to say.

**References**: docs/frameworks.md, docs/sizing.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.job.spec import JobSpec
from launcher.job.starter import PER_GPU, Starter
from launcher.plan.launch_plan import LaunchPlan

CODE = "TL207"
NAME = "ranks-unknown"
SEVERITY = Severity.ERROR


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error where two stated numbers differ, or a command starts ranks and nothing says how many."""
    job, starter = plan.job, plan.job.starter
    nproc = job.torchrun.nproc_per_node if job.torchrun else None
    if job.ranks_per_container is not None and nproc not in {None, job.ranks_per_container}:
        yield Diagnostic(
            CODE,
            f"ranks_per_container {job.ranks_per_container} and torchrun.nproc_per_node {nproc} differ",
            f"delete ranks_per_container (trainlaunch would take {nproc})",
            why="torchrun starts nproc_per_node ranks in the container, and /dev/shm is sized for the ranks in it",
            severity=SEVERITY,
            span=job.span("ranks_per_container"),
            field="ranks_per_container",
        )
    if starter is not None and job.torchrun is None:
        yield from _started(job, starter)


def _started(job: JobSpec, starter: Starter) -> Iterator[Diagnostic]:
    """Yield what is wrong between the number that the command starts and the one that the job states."""
    started = job.resources.gpus.count or None if starter.count == PER_GPU else starter.count
    why = "/dev/shm, memory and threads are for all training processes of the container"
    if job.ranks_per_container is None:
        if started is None and not job.resources.gpus.count:
            yield Diagnostic(
                CODE,
                f"{starter.field} calls {starter.name}, and nothing says how many ranks it starts",
                f"add ranks_per_container: 2, or the number that it starts, and {starter.typed(2)} to the call",
                why=why,
                severity=SEVERITY,
                span=job.span(starter.field),
                field="ranks_per_container",
            )
    elif isinstance(started, int) and started != job.ranks_per_container:
        per_gpu = f"{starter.words}, one per GPU: {started}" if starter.count == PER_GPU else starter.words
        yield Diagnostic(
            CODE,
            f"ranks_per_container {job.ranks_per_container} and {starter.field} ({per_gpu}) differ",
            f"delete ranks_per_container (trainlaunch would take {started})",
            why=why,
            severity=SEVERITY,
            span=job.span("ranks_per_container"),
            field="ranks_per_container",
        )
