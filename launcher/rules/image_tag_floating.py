"""The image names no fixed release: its tag is `latest`, or it has none.

**Why it matters**: a floating tag changes under a committed rendering, so a run can't be repeated.

**Example**:

```yaml
image: pytorch/pytorch:latest
```

**Use instead**:

```yaml
image: pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
```

**Fix**: name a tag or a digest; `trainlaunch lock` writes the digest of what the tag is today beside the job file.

**References**: docs/check-and-lock.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan

CODE = "TL111"
NAME = "image-tag-floating"
SEVERITY = Severity.WARNING


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning for a tag `latest` or none; a digest is fixed, and target local starts no image."""
    job = plan.job
    name = job.image.rsplit("/", 1)[-1]
    if not plan.target_record.starts_container or "@" in name or (":" in name and not name.endswith(":latest")):
        return
    yield Diagnostic(
        CODE,
        f"image {job.image} names no fixed release",
        "set image to a tag other than latest, or to a digest (name@sha256:…)",
        why="a floating tag changes under a committed rendering, so a run can't be repeated",
        severity=SEVERITY,
        span=job.span("image"),
        field="image",
    )
