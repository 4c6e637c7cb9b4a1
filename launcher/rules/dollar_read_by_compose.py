"""A command names a variable of its own service with one `$`, which Compose replaces before the container starts.

**Why it matters**: Compose reads `$EPOCHS` from the shell that calls it and from .env, not from the service's
environment: `The "EPOCHS" variable is not set. Defaulting to a blank string`.

**Example**:

```compose
services:
  train:
    image: trainer:1
    environment: {EPOCHS: "3"}
    command: sh -c "exec python train.py --epochs $EPOCHS"
```

**Use instead**:

```compose
services:
  train:
    image: trainer:1
    environment: {EPOCHS: "3"}
    command: sh -c "exec python train.py --epochs $$EPOCHS"
```

**Fix**: none by itself: .env may hold the same name on purpose. `$$` is one `$` for the container's shell.

**References**: Compose file reference, interpolation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.compose.values import pieces
from launcher.formats.workload import Known
from launcher.rules.written.model import COMPOSE, DEFECTS, Finding, Written, WrittenFile, at, below
from launcher.yamltree.documents import Scalar

CODE = "TL360"
NAME = "dollar-read-by-compose"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_NAME = re.compile(r"\$\{?(\w+)\}?")


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each variable of a command that the service's own environment gives a literal value."""
    for written in file.containers if file.kind == COMPOSE else ():
        for key in ("command", "entrypoint", "healthcheck"):
            yield from _of(written, key)


def _of(written: Written, key: str) -> Iterator[Finding]:
    env = written.workload.env
    told: set[str] = set()
    for node in below(at(written.own, key)):
        for text, variable in pieces(node.text) if isinstance(node, Scalar) else ():
            match = _NAME.fullmatch(text) if variable else None
            if match is None or not isinstance(env.get(match[1]), Known) or match[1] in told:
                continue
            told.add(match[1])
            yield Finding(
                Diagnostic(
                    CODE,
                    f"Compose replaces {text} before the container starts, and doesn't read the service's environment",
                    f"write $${text[1:]}, which a shell of the container replaces",
                    why="variables of the file come from the calling shell and from .env",
                    severity=SEVERITY,
                    span=node.span,
                    field=written.workload.place,
                ),
                NAME,
            )
