"""A docker line of a CI job asks for a terminal, which a CI job does not have.

**Why it matters**: the command line stops before anything starts: `the input device is not a TTY`, exit 1.

**Example**:

```workflow
on: push
jobs:
  train:
    runs-on: ubuntu-latest
    steps: [{run: "docker run -it --rm --shm-size=2g trainer:1 python train.py"}]
```

**Use instead**:

```workflow
on: push
jobs:
  train:
    runs-on: ubuntu-latest
    steps: [{run: "docker run --rm --shm-size=2g trainer:1 python train.py"}]
```

**Fix**: delete `-t`; `-i` may stay.

**References**: docker run --tty; a runner's steps have no terminal on stdin.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import DEFECTS, GITHUB, GITLAB, Finding, WrittenFile

CODE = "TL333"
NAME = "terminal-in-ci"
SEVERITY = Severity.ERROR
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each docker run of a CI job with a terminal and stdin; detached ones need none."""
    for written in file.containers if file.kind in {GITHUB, GITLAB} else ():
        rest = written.workload.rest
        if rest.get("--tty") is not True or rest.get("--interactive") is not True or rest.get("--detach") is True:
            continue
        yield Finding(
            Diagnostic(
                CODE,
                "-it asks for a terminal, and a CI job has none",
                "delete -t",
                why="docker stops with `the input device is not a TTY`, exit 1, before anything starts",
                severity=SEVERITY,
                span=written.workload.span,
                field=written.workload.place,
            ),
            NAME,
        )
