"""image_entrypoint is not stated, so a rendering replaces an ENTRYPOINT that the image may have.

**Why it matters**: the preflight takes the ENTRYPOINT's place. `up` asks the image and stops for one; a
rendering can't ask.

**Example**:

```yaml
image: pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
```

**Use instead**:

```yaml
image: pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
image_entrypoint: []
```

**Fix**: state the ENTRYPOINT that `docker image inspect` shows, or []; `trainlaunch lock` writes it beside the job.

**References**: docs/preflight.md; docs/check-and-lock.md.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan

CODE = "TL403"
NAME = "image-entrypoint-unknown"
SEVERITY = Severity.INFO


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an info where neither the job nor its lock says what the image's ENTRYPOINT is."""
    job = plan.job
    if job.image_entrypoint is not None or not plan.target_record.starts_container:
        return
    command = shlex.join(["trainlaunch", "lock", job.path])
    yield Diagnostic(
        CODE,
        "image_entrypoint is not stated, so an ENTRYPOINT of the image is replaced by the preflight",
        f"run `{command}`, which asks the engine, or state it: image_entrypoint: [] where the image has none",
        why="the preflight takes the ENTRYPOINT's place; `up` asks the image and stops for one, a rendering can't",
        severity=SEVERITY,
        span=job.span("image"),
        field="image_entrypoint",
    )
