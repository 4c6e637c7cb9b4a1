"""A job that may be started again has nowhere to go on from.

**Why it matters**: each attempt starts in a new container, so that it trains from the beginning: a job that dies in its
tenth hour each time never ends. With `checkpoint_dir` the preflight proves the folder before the first epoch, and the
script finds it in TRAINLAUNCH_CHECKPOINT_DIR.

**Example**:

```yaml
restart: {max_attempts: 3}
```

**Use instead**:

```yaml
restart: {max_attempts: 3}
mounts: [{type: volume, source: checkpoints, target: /checkpoints}]
checkpoint_dir: /checkpoints
```

**Fix**: none by itself: only the script can save, and go on from what it saved.

**References**: examples/resume; docs/preflight.md, section Checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan

CODE = "TL213"
NAME = "attempts-without-checkpoint"
SEVERITY = Severity.WARNING


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning where further attempts are asked for, and nothing says where the one before left off."""
    job = plan.job
    if job.max_attempts < 2 or job.checkpoint_dir is not None:
        return
    yield Diagnostic(
        CODE,
        f"restart.max_attempts is {job.max_attempts}, and checkpoint_dir is not stated: each trains from the start",
        "mount a folder, state it as checkpoint_dir, and let the script go on from TRAINLAUNCH_CHECKPOINT_DIR",
        why="an attempt starts in a new container, and what the one before wrote there is gone with it",
        severity=SEVERITY,
        span=job.span("restart.max_attempts"),
        field="restart.max_attempts",
    )
