"""A variable of a Compose service is a number to YAML, and arrives as another text than it is written.

**Why it matters**: Compose resolves the scalar first: `3.10` arrives as `3.1`, `1e3` as `1000`, `017` as `15`. A
program that compares versions or reads octal modes takes the wrong one.

**Example**:

```compose
services:
  train:
    image: trainer:1
    environment: {PYTHON_VERSION: 3.10}
```

**Use instead**:

```compose
services:
  train:
    image: trainer:1
    environment: {PYTHON_VERSION: "3.10"}
```

**Fix**: none by itself: quotes change what the program gets today.

**References**: YAML 1.2, core schema; docs/compose.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.compose.values import spelled
from launcher.rules.written.model import COMPOSE, DEFECTS, Finding, WrittenFile, at
from launcher.yamltree.documents import Mapping, Scalar
from launcher.yamltree.scalars import value_of

CODE = "TL362"
NAME = "look-alike-in-environment"
SEVERITY = Severity.WARNING
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each variable whose text Compose changes."""
    for written in file.containers if file.kind == COMPOSE else ():
        env = at(written.own, "environment")
        for name, node in env.items.items() if isinstance(env, Mapping) else ():
            if not isinstance(node, Scalar) or not node.plain or value_of(node) is None:
                continue
            arrives = spelled(node)
            if arrives.lower() == node.text.lower():
                continue
            yield Finding(
                Diagnostic(
                    CODE,
                    f"{name} is written {node.text} and arrives as {arrives}",
                    f'write "{node.text}", or "{arrives}" if that is meant',
                    why="YAML reads it as a number, which Compose prints in its own way",
                    severity=SEVERITY,
                    span=node.span,
                    field=written.workload.place,
                ),
                NAME,
            )
