"""The job's name and the target's suffix are longer than a label, so the name is shortened with a hash.

**Why it matters**: a Kubernetes name becomes a label of the job's pods, and labels hold 63 characters.

**Example**:

```yaml
name: a-name-of-a-job-that-says-all-about-it-and-does-not-fit-a-label
target: kubernetes
resources: {cpus: 4, memory: 8Gi}
```

**Use instead**:

```yaml
name: a-shorter-name
target: kubernetes
resources: {cpus: 4, memory: 8Gi}
```

**Fix**: choose a shorter name; objects that a cluster has under the old one keep it.

**References**: docs/kubernetes.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.names import LONGEST_NAME, longest_cluster_name, shortened

CODE = "TL402"
NAME = "name-shortened"
SEVERITY = Severity.INFO


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an info with the name that the objects get."""
    job, name = plan.job, plan.name
    if job.kind is None:
        return
    longest = longest_cluster_name(job.kind, job.nodes, fixed=plan.stable_name)
    if len(name) <= longest:
        return
    yield Diagnostic(
        CODE,
        f"name has {len(name)} characters, {longest} fit beside the suffix, so it becomes {shortened(name, longest)}",
        f"choose a name of at most {longest} characters",
        why=f"the name becomes a label of the job's pods, and labels hold {LONGEST_NAME} characters",
        severity=SEVERITY,
        span=job.span("name"),
        field="name",
    )
