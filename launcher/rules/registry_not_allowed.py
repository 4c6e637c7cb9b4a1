r"""The image comes from a registry that the policy does not allow.

**Why it matters**:
an image without a registry in front comes from docker.io, and from `library/` there where it has one part.
Whole parts of a path are compared: `registry.example.com/team` allows no `registry.example.com/team-b`.

**Example**:

```sh
printf 'allowed_registries: [registry.example.com/ml]\n' > trainlaunch-policy.yaml
trainlaunch plan job.yaml
```

**Use instead**:

```sh
printf 'allowed_registries: [registry.example.com/ml]\n' > trainlaunch-policy.yaml
trainlaunch plan job.yaml --set image=registry.example.com/ml/trainer:1
```

**Fix**: name the image in an allowed registry; that it holds the same image there is the author's to see to.

**References**: docs/policy.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.policy.registry import in_registry, parts_of

CODE = "TL142"
NAME = "registry-not-allowed"
SEVERITY = Severity.ERROR


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error where the image lies in none of the allowed registries; target local starts no image."""
    job = plan.job
    if not plan.target_record.starts_container or job.policy is None:
        return
    for allowed, span in job.policy.allowed.get("allowed_registries", ()):
        if any(in_registry(job.image, each) for each in allowed):
            continue
        origin = f" ({job.origin('image')})" if job.span("image") is None else ""
        place = f"{span.file}:{span.line}"
        yield Diagnostic(
            CODE,
            f"image {job.image}{origin} comes from {'/'.join(parts_of(job.image))}, and the policy allows "
            f"{', '.join(allowed)} ({place})",
            f"set image to one of {', '.join(allowed)}, or add its registry to {place}",
            why="an image without a registry in front comes from docker.io, of library/ where it has one part",
            severity=SEVERITY,
            span=job.span("image"),
            field="image",
        )
