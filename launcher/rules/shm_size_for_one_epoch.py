"""shm_size holds the batches of one epoch, and not those of several.

**Why it matters**: `for batch in loader:` leaves its last batch in `batch`. Under fork the workers of the next
epoch inherit it and keep it mapped until they end, so from the second epoch on one batch more is in
/dev/shm. It was measured to the byte (docs/sizing.md).

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
    fix = f"set shm_size to {format_size(round_up(max(shm.multi_epoch, shm.worst_case), MIB))}, or delete it"
    if job.shm_size is None:  # capped by the policy
        fix = f"lower data_loader.num_workers (now {shm.most_workers}) or batch_size"
    yield Diagnostic(
        CODE,
        f"shm_size {format_size(shm.size.value)} holds one epoch ({human_size(shm.need)}), "
        f"and several need {human_size(shm.multi_epoch)}",
        fix,
        why="under fork the workers of the second epoch inherit the last batch, which the loop variable still holds",
        severity=SEVERITY,
        span=job.span("shm_size"),
        field="shm_size",
    )
