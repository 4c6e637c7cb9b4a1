r"""A label that the policy asks for is missing, empty, or has another form.

**Why it matters**:
whoever pays for a machine finds its jobs by their labels. A pattern is a regular expression (RE2) of the whole value.

**Example**:

```sh
printf 'required_labels: [team]\n' > trainlaunch-policy.yaml
trainlaunch plan job.yaml
```

**Use instead**:

```sh
printf 'required_labels: [team]\n' > trainlaunch-policy.yaml
trainlaunch plan job.yaml --set labels.team=vision
```

**Fix**: add the label; what stands in it is the author's to say.

**References**: docs/policy.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.job.values.patterns import matches
from launcher.plan.launch_plan import LaunchPlan

CODE = "TL141"
NAME = "required-label-missing"
SEVERITY = Severity.ERROR


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error for each required label that the job lacks or has in another form."""
    job = plan.job
    for name, pattern, span in job.policy.required_labels if job.policy else ():
        value = job.labels.get(name)
        if value is not None and matches(pattern, value):
            continue
        found = "is missing" if value is None else f"is {value!r}" if value else "is empty"
        asked = "a label of that name" if pattern == ".+" else f"a value like {pattern}"
        yield Diagnostic(
            CODE,
            f"the label {name} {found}, and the policy asks for {asked} ({span.file}:{span.line})",
            f"add {name} to labels, as in labels: {{{name}: …}}" if value is None else f"set labels.{name} to {asked}",
            why="whoever pays for a machine finds its jobs by their labels",
            severity=SEVERITY,
            span=job.span(f"labels.{name}") or job.span("labels"),
            field="labels",
        )
