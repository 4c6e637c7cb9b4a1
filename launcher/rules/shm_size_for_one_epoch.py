"""shm_size holds the batches of one epoch, and not those of several; in turn, those of one loader.

**Why it matters**: `for batch in loader:` leaves its last batch in `batch`. Under fork the workers of the next
epoch inherit it and keep it mapped until they end, so from the second epoch on one batch more is in
/dev/shm. It was measured to the byte (docs/sizing.md). With `loaders_run: in_turn` the next loader's workers
inherit it as well, so the job may die as soon as the second loader starts.

**Example**:

```yaml
shm_size: 400Mi
data_loader:
  num_workers: 2
  batch_size: 256
  sample: {shape: [65536], dtype: float32}
```

**Use instead**:

```yaml
shm_size: 600Mi
data_loader:
  num_workers: 2
  batch_size: 256
  sample: {shape: [65536], dtype: float32}
```

Or delete shm_size. `del batch` at the end of each epoch makes it unnecessary.

**Fix**: type the size of the message, or delete shm_size; a larger one costs nothing until it is used.

**References**: docs/sizing.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.units import MIB, format_size, human_size, round_up

CODE = "TL210"
NAME = "shm-size-for-one-epoch"
SEVERITY = Severity.WARNING


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning where the size, stated or capped by the policy, holds one epoch and not several."""
    job, shm = plan.job, plan.shm
    if not shm.need <= shm.size.value < shm.multi_epoch:
        return
    fix = f"set shm_size to {format_size(round_up(shm.worst_case, MIB))}, or delete it"
    if job.shm_size is None:  # capped by the policy
        fix = f"lower data_loader.num_workers (now {shm.most_workers}) or batch_size"
    yield Diagnostic(
        CODE,
        f"shm_size {format_size(shm.size.value)} holds {_held(plan)} ({human_size(shm.need)}), "
        f"and {_asked(plan)} {human_size(shm.multi_epoch)}",
        fix,
        why=_why(plan),
        severity=SEVERITY,
        span=job.span("shm_size"),
        field="shm_size",
    )


def _several_in_turn(plan: LaunchPlan) -> bool:
    return plan.shm.in_turn and sum(each.workers > 0 for each in plan.shm.loaders) > 1


def _held(plan: LaunchPlan) -> str:
    return "the largest loader alone" if _several_in_turn(plan) else "one epoch"


def _asked(plan: LaunchPlan) -> str:
    return "all of them in turn need" if _several_in_turn(plan) else "several need"


def _why(plan: LaunchPlan) -> str:
    """Return what else is in /dev/shm, and from when on."""
    forked = plan.job.data_loader.multiprocessing_context == "fork"
    if not _several_in_turn(plan):
        return "under fork the workers of the second epoch inherit the last batch, which the loop variable still holds"
    inherited = ", and under fork the workers inherit it" if forked else ""
    return (
        "the job may fail as soon as the second loader starts: the first loop's variable still holds its last batch"
        + inherited
    )
