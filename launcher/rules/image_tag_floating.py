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
from typing import TYPE_CHECKING

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan

if TYPE_CHECKING:
    from launcher.rules.written.model import Finding, WrittenFile

CODE = "TL111"
NAME = "image-tag-floating"
SEVERITY = Severity.WARNING
GROUP = "practice"
_WHY = "a floating tag changes under a committed rendering, so a run can't be repeated"


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning for a tag `latest` or none; a digest is fixed, and target local starts no image."""
    job = plan.job
    if not plan.target_record.starts_container or not _is_floating(job.image):
        return
    yield Diagnostic(
        CODE,
        f"image {job.image} names no fixed release",
        "set image to a tag other than latest, or to a digest (name@sha256:…)",
        why=_WHY,
        severity=SEVERITY,
        span=job.span("image"),
        field="image",
    )


def _is_floating(image: str) -> bool:
    name = image.rsplit("/", 1)[-1]
    return "@" not in name and (":" not in name or name.endswith(":latest"))


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each image of a container that trains or has a GPU without a fixed release."""
    from launcher.formats.workload import Known
    from launcher.rules.written.evidence import has_gpu, trains
    from launcher.rules.written.model import Finding, at

    for written in file.containers:
        image = written.workload.image
        if not isinstance(image, Known) or not _is_floating(image.value) or at(written.own, "build") is not None:
            continue
        if trains(written) or has_gpu(written.workload):
            fix = "name a tag other than latest, or a digest (name@sha256:…)"
            message = f"image {image.value} names no fixed release"
            place = written.workload.place
            diagnostic = Diagnostic(CODE, message, fix, _WHY, Severity.INFO, image.span, place)
            yield Finding(diagnostic, NAME)
