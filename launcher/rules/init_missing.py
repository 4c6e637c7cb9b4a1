"""A training container of docker or Compose has no init process.

**Why it matters**: python is then process 1, which ignores SIGTERM unless it has a handler and reaps no child of a
child: `docker stop` waits its whole time and kills (exit 137), dead workers stay as zombies.

**Example**:

```shell
docker run --rm --shm-size=4g trainer:1 python train.py
```

**Use instead**:

```shell
docker run --rm --init --shm-size=4g trainer:1 python train.py
```

**Fix**: add --init, or `init: true`.

**References**: docker run --init; docs/docker.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.evidence import trains
from launcher.rules.written.model import COMPOSE, PRACTICE, SHELL, Finding, WrittenFile, at

CODE = "TL368"
NAME = "init-missing"
SEVERITY = Severity.INFO
GROUP = PRACTICE


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each container that trains as process 1."""
    for written in file.containers if file.kind in {COMPOSE, SHELL} else ():
        workload = written.workload
        stated = any(key in workload.rest for key in ("--init", "service.init", "unclear"))
        if not trains(written) or stated or at(written.own, "extends") is not None:
            continue
        yield Finding(
            Diagnostic(
                CODE,
                "training runs as process 1, without an init process",
                "add init: true" if file.kind == COMPOSE else "add --init",
                why="process 1 ignores SIGTERM without a handler, and reaps no dead workers of others",
                severity=SEVERITY,
                span=workload.span,
                field=workload.place,
            ),
            NAME,
        )
