"""shm_size is smaller than what the job's DataLoaders put into /dev/shm.

**Why it matters**: each worker keeps prefetch_factor batches there, besides those that the training loop
holds. A full /dev/shm ends in `Bus error` or `No space left on device`, or the loop waits for ever.

**Example**:

```yaml
shm_size: 64Mi
data_loader:
  num_workers: 4
  batch_size: 128
  sample: {shape: [3, 224, 224], dtype: float32}
```

**Use instead**:

```yaml
shm_size: 1Gi
data_loader:
  num_workers: 4
  batch_size: 128
  sample: {shape: [3, 224, 224], dtype: float32}
```

How the need is computed: docs/sizing.md.

**Fix**: type the size of the message, or delete shm_size; a larger one costs nothing until it is used. `--force` makes
it a warning, and the preflight then stops the job with 78.

**References**: docs/sizing.md; docs/troubleshooting.md has what the job would die of.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.shared_memory import WHEN_FULL
from launcher.units import MIB, format_size, human_size, round_up

CODE = "TL202"
NAME = "shm-size-below-need"
SEVERITY = Severity.ERROR


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error, under --force a warning; an automatic size is only below the need at a policy's ceiling."""
    job, shm = plan.job, plan.shm
    if shm.size.value >= shm.need or job.shm_size is None:
        return
    forced = " (--force: the preflight will stop it with 78)" if plan.forced else ""
    yield Diagnostic(
        CODE,
        f"shm_size {format_size(shm.size.value)} is below the {human_size(shm.need)} that the DataLoaders need{forced}",
        f"set shm_size to {format_size(round_up(shm.worst_case, MIB))}, "
        f"at least {format_size(round_up(shm.multi_epoch, MIB))}, or delete it",
        why=WHEN_FULL,
        severity=Severity.WARNING if plan.forced else SEVERITY,
        span=job.span("shm_size"),
        field="shm_size",
    )
