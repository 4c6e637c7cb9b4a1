r"""A field that the policy asks for has no value.

**Why it matters**:
what a platform plans with, like a deadline or the CPUs of a job, must be stated by somebody: by the job, by a profile,
or by the defaults of a policy.

**Example**:

```sh
printf 'required: [active_deadline]\n' > trainlaunch-policy.yaml
trainlaunch plan job.yaml
```

**Use instead**:

```sh
printf 'required: [active_deadline]\n' > trainlaunch-policy.yaml
trainlaunch plan job.yaml --set active_deadline=8h
```

**Fix**: state the field; its value is the author's to say.

**References**: docs/policy.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan

CODE = "TL153"
NAME = "required-field-missing"
SEVERITY = Severity.ERROR


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error for each required field that neither the job nor anything beneath it states."""
    job = plan.job
    for name, span in job.policy.required if job.policy else ():
        if name not in job.origins:
            outer = next(
                (part for part in (name.rpartition(".")[0], name.partition(".")[0]) if part in job.origins), ""
            )
            yield Diagnostic(
                CODE,
                f"{name} is not stated, and the policy requires it ({span.file}:{span.line})",
                f"add {name} to the job"
                if "." not in name
                else f"add {name.rpartition('.')[2]} to {name.rpartition('.')[0]}",
                why="what a platform plans with must be stated by the job, a profile or a policy's defaults",
                severity=SEVERITY,
                span=job.span(outer) if outer else None,
                field=name,
            )
