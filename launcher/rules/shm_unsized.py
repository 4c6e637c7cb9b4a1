"""data_loader states no sample, so /dev/shm has a cap and no computed need.

**Why it matters**: the need follows from workers × prefetch_factor × the bytes of one batch. Without them half
of the memory limit is taken, or 8 GiB; a cap costs nothing until it is used. `probe` measures the batches of the script
that is there; `up` and `status` print what they can tell from outside, as a line to paste.

**Example**:

```yaml
data_loader: {num_workers: 4}
```

**Use instead**:

```yaml
data_loader: {num_workers: 4, batch_bytes: {size: 77Mi, tensors: 2}}
```

**Fix**: `trainlaunch probe job.yaml --write`, or run it once and paste the line that `up` and `status` print; no result
of the training depends on it.

**References**: docs/sizing.md, docs/probe.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.measured import measuring_command
from launcher.units import human_size

CODE = "TL209"
NAME = "shm-unsized"
SEVERITY = Severity.INFO


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an info where the size is a cap and no need."""
    if not plan.shm.unsized:
        return
    yield Diagnostic(
        CODE,
        f"/dev/shm is unsized: {human_size(plan.shm.size.value)} is a cap, not a need, since data_loader has no sample",
        f"run `{measuring_command('probe', plan.job)}` to measure it, or state data_loader.sample",
        why="the size follows from workers × prefetch_factor × the bytes of one batch; a cap costs nothing until used",
        severity=SEVERITY,
        span=plan.job.span("data_loader"),
        field="data_loader.sample",
    )
