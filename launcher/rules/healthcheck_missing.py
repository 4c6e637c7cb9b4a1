"""A training container of docker or Compose has no health check.

**Why it matters**: a DataLoader that waits for a full /dev/shm, or a rank for one that died, hangs without an exit
code; an engine shows such a container as up for days.

**Example**:

```compose
services:
  train: {image: "trainer:1", command: python train.py, init: true}
```

**Use instead**:

```compose
services:
  train:
    image: trainer:1
    command: python train.py
    init: true
    healthcheck: {test: [CMD, python, is_alive.py]}
```

**Fix**: none by itself: what is healthy is the script's business. `render` writes one.

**References**: docs/health.md; Dockerfile reference, HEALTHCHECK.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.evidence import trains
from launcher.rules.written.model import COMPOSE, PRACTICE, SHELL, Finding, WrittenFile, at

CODE = "TL367"
NAME = "healthcheck-missing"
SEVERITY = Severity.INFO
GROUP = PRACTICE


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each container that trains without a health check; one of the image is unknown here."""
    for written in file.containers if file.kind in {COMPOSE, SHELL} else ():
        workload = written.workload
        if not trains(written) or workload.health is not None or at(written.own, "healthcheck") is not None:
            continue
        if "unclear" in workload.rest or "--no-healthcheck" in workload.rest or at(written.own, "extends") is not None:
            continue
        yield Finding(
            Diagnostic(
                CODE,
                "training runs without a health check",
                "add a healthcheck" if file.kind == COMPOSE else "add --health-cmd",
                why="a loader or a rank that waits for ever leaves no exit code",
                severity=SEVERITY,
                span=workload.span,
                field=workload.place,
            ),
            NAME,
        )
