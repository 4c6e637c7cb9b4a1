r"""The policy requires a digest, and the image has none.

**Why it matters**:
a tag can be moved to another image under a committed rendering. `trainlaunch lock` asks the engine for the
digest and writes it beside the job file; that is enough.

**Example**:

```sh
printf 'require_digest: true\n' > trainlaunch-policy.yaml
trainlaunch plan job.yaml
```

**Use instead**:

```sh
printf 'require_digest: true\n' > trainlaunch-policy.yaml
trainlaunch plan job.yaml --set "image=trainer:1@sha256:$(printf %064d 0)"
```

**Fix**: run `trainlaunch lock`, which writes the digest beside the job file: the same image, held fast.

**References**: docs/policy.md; docs/check-and-lock.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan

CODE = "TL143"
NAME = "image-not-pinned"
SEVERITY = Severity.ERROR


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error where neither the job nor its lock gives the image a digest; target local starts no image."""
    job = plan.job
    if (
        not plan.target_record.starts_container
        or job.policy is None
        or job.policy.digest_span is None
        or "@" in job.image
    ):
        return
    span = job.policy.digest_span
    origin = f" ({job.origin('image')})" if job.span("image") is None else ""
    yield Diagnostic(
        CODE,
        f"image {job.image}{origin} is not pinned, and the policy requires a digest ({span.file}:{span.line})",
        f"run `trainlaunch lock {job.path}`, or set image to {job.image.rpartition(':')[0] or job.image}@sha256:…",
        why="a tag can be moved to another image under a committed rendering",
        severity=SEVERITY,
        span=job.span("image"),
        field="image",
    )
