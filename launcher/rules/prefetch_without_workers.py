"""The command passes {prefetch_factor}, and num_workers is 0.

**Why it matters**: torch refuses a prefetch_factor without workers. A CPU-only job with fewer than 4 CPUs gets
0 workers.

**Example**:

```yaml
command: [python, train.py, "--prefetch={prefetch_factor}"]
resources: {cpus: 2}
```

**Use instead**:

```yaml
command: [python, train.py, "--prefetch={prefetch_factor}"]
resources: {cpus: 2}
data_loader: {num_workers: 1}
```

**Fix**: state num_workers, or drop the argument; which of the two is meant is the author's to say.

**References**: docs/preflight.md; torch.utils.data.DataLoader raises ValueError for a prefetch_factor without workers.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan

CODE = "TL208"
NAME = "prefetch-without-workers"
SEVERITY = Severity.WARNING
PREFETCH = "{prefetch_factor}"


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning where an argument is or ends with the token, and no loader has a worker."""
    job = plan.job
    if plan.shm.workers or not any(each.endswith(PREFETCH) for each in job.command or ()):
        return
    yield Diagnostic(
        CODE,
        f"the command passes {PREFETCH}, but num_workers is 0",
        "set data_loader.num_workers to 1 or more, or drop the argument",
        why="torch refuses a prefetch_factor without workers",
        severity=SEVERITY,
        span=job.span("command"),
        field="command",
    )
