"""Files of a code mount are new to git, so the cluster doesn't get them.

**Why it matters**: on Kubernetes a mount of type code brings the files that git tracks, so that every checkout renders
the same. A module that was written and never added is missing there: `ModuleNotFoundError` in a job that runs on all
other targets.

**Example**:

```text
touch src/augment.py && trainlaunch plan job.yaml --target kubernetes    # mounts ./src as code
```

**Use instead**:

```text
git add src/augment.py && trainlaunch plan job.yaml --target kubernetes
```

**Fix**: none by itself; add the files, or name them in .gitignore where the job doesn't need them.

**References**: docs/kubernetes.md, section Code.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.job.names import shown
from launcher.plan.launch_plan import LaunchPlan

CODE = "TL212"
NAME = "code-untracked"
SEVERITY = Severity.WARNING
_NAMED = 3


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning for each code mount with files that git neither tracks nor ignores."""
    for index, folder in plan.job.code.items():
        if not folder.untracked:
            continue
        source, field = str(plan.job.mounts[index].source), f"mounts.{index}.source"
        named = ", ".join(map(shown, folder.untracked[:_NAMED])) + ", …" * (len(folder.untracked) > _NAMED)
        yield Diagnostic(
            CODE,
            f"git doesn't track {named} in {shown(source)}, so the cluster doesn't get them",
            "`git add` what the job needs, and name the rest in .gitignore",
            why="a code mount brings the files that git tracks, so that every checkout renders the same",
            severity=SEVERITY,
            span=plan.job.span(field),
            field=field,
        )
