"""`inject: num_workers` gives a loader none, since the lock's probe found what workers would bring out.

**Why it matters**: a file that a dataset opened in `__init__`, a generator of its own, a thread that runs before the
fork: one process reads such a dataset right, and workers read wrong samples, draw the same numbers again, or wait for
ever. Mostly without an error.

**Example**:

```text
data_loader: {inject: num_workers}   # and the lock says against_workers: [handle-in-init] of train.py:48
```

**Use instead**:

```text
data_loader: {inject: num_workers}   # after the dataset opens its file in the worker: probe --write anew
```

**Fix**: mend the dataset as `trainlaunch probe` says, and probe again.

**References**: docs/inject.md, docs/probe.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.inside import INJECTED
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.measured import fresh_probe, measuring_command

CODE = "TL730"
NAME = "workers-not-injected"
SEVERITY = Severity.WARNING
_WHY = "workers would read wrong samples, repeat random numbers, or wait for ever, mostly without an error"


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning for each loader that is given no workers."""
    probe = fresh_probe(plan.job)
    if probe is None or plan.job.data_loader.inject != INJECTED:
        return
    again = measuring_command("probe", plan.job, probe.target)
    for loader, probed in zip(plan.job.data_loader.loaders, probe.loaders, strict=True):
        if probed.against_workers:
            found = ", ".join(probed.against_workers)
            yield Diagnostic(
                CODE,
                f"{loader.name} is given no workers: at {probed.at} probe found {found}",
                f"mend it as probe says, then run `{again}`",
                why=_WHY,
                severity=SEVERITY,
                span=plan.job.span("data_loader.inject"),
                field="data_loader.inject",
            )
