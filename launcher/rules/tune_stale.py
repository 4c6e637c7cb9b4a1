"""What the lock's tune found is of another job than this one is now, or of other CPUs, so it isn't used.

**Why it matters**: how many workers are fastest follows from the script and from the CPUs that it has. Too few leave a
GPU waiting; too many take the CPUs from the process that trains.

**Example**:

```sh
cat > job.lock.yaml <<'END'
version: 2
tune:
  docker:
    input: "sha256:of the job before its command was changed"
    cpus: 8
    num_workers: 6
    prefetch_factor: 4
END
trainlaunch plan job.yaml
```

**Use instead**:

```sh
rm -f job.lock.yaml  # or: trainlaunch tune job.yaml --write
trainlaunch plan job.yaml
```

**Fix**: none by itself; the message has the command that measures again.

**References**: docs/sizing.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.measured import fresh_tune, measuring_command
from launcher.units import format_cpus

CODE = "TL729"
NAME = "tune-stale"
SEVERITY = Severity.WARNING


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning where the lock has a tune of this target that is of another job or of other CPUs."""
    job = plan.job
    tune = job.measured.tune if job.measured else None
    if tune is None or fresh_tune(job) is not None:
        return
    changed = "image, command, data_loader or ranks have changed since"
    if tune.cpus != job.resources.cpus:
        had, has = (format_cpus(each) if each else "no limit" for each in (tune.cpus, job.resources.cpus))
        changed = f"it was measured with resources.cpus {had}, and the job has {has}"
    yield Diagnostic(
        CODE,
        f"what the lock's tune found on {job.target} is not used: {changed}",
        f"run `{measuring_command('tune', job)}`, or delete it there",
        why="how many workers are fastest follows from the script and from its CPUs",
        severity=SEVERITY,
        span=tune.span,
    )
