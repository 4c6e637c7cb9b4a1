"""shm_size is stated, num_workers is auto, and not even one worker fits.

**Why it matters**: auto takes the largest number of workers that fits; 0 workers would be a slow job without a
word, so it is an error.

**Example**:

```yaml
shm_size: 64Mi
resources: {cpus: 8, gpus: 1}
data_loader:
  batch_size: 128
  sample: {shape: [3, 224, 224], dtype: float32}
```

**Use instead**:

```yaml
resources: {cpus: 8, gpus: 1}
data_loader:
  batch_size: 128
  sample: {shape: [3, 224, 224], dtype: float32}
```

**Fix**: type one of the two sizes of the message, or delete shm_size; a larger one costs nothing until it is used.

**References**: docs/sizing.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.shared_memory import Workers, container_need, size_for_all_epochs
from launcher.plan.workers import allowed_workers
from launcher.units import MIB, counted, format_size, human_size, round_up

CODE = "TL205"
NAME = "shm-size-holds-no-worker"
SEVERITY = Severity.ERROR


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error where the plan holds one automatic worker for want of a number that fits.

    Nothing under --force, where shm-size-below-need says it; a policy's ceiling on shm_size says itself that it is low.
    """
    job, ranks = plan.job, plan.ranks.value
    one = container_need(job, ranks, Workers(1))
    alone = plan.auto_workers and plan.num_workers.value == 1
    if plan.forced or job.shm_size is None or not alone or one <= job.shm_size:
        return
    allowed = allowed_workers(job, ranks).value
    fitting, all_of_them = (size_for_all_epochs(job, ranks, Workers(count)) for count in (1, allowed))
    yield Diagnostic(
        CODE,
        f"shm_size {format_size(job.shm_size)} does not hold one worker, which needs {human_size(one)}",
        f"set shm_size to {format_size(round_up(all_of_them, MIB))} ({counted(allowed, 'worker')}), or at least "
        f"{format_size(round_up(fitting, MIB))} (one worker), or delete it",
        why="each worker keeps prefetch_factor batches in /dev/shm, besides those that the training loop holds",
        severity=SEVERITY,
        span=job.span("shm_size"),
        field="shm_size",
    )
