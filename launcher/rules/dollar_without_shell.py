"""A command of Compose passes a literal `$NAME` to a program that is no shell.

**Why it matters**: `$$NAME` keeps Compose from replacing it, and then a shell inside would. Without one the program
gets the characters `$NAME` themselves.

**Example**:

```compose
services:
  train:
    image: trainer:1
    environment: {EPOCHS: "3"}
    command: [python, train.py, --epochs, $$EPOCHS]
```

**Use instead**:

```compose
services:
  train:
    image: trainer:1
    environment: {EPOCHS: "3"}
    command: [sh, -c, 'exec python train.py --epochs "$$EPOCHS"']
```

**Fix**: none by itself: the image's ENTRYPOINT may be a shell.

**References**: Compose specification, interpolation; services.command is no shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import stated
from launcher.rules.written.commands import SHELLS, is_python, is_training
from launcher.rules.written.model import COMPOSE, DEFECTS, Finding, Written, WrittenFile, at
from launcher.yamltree.documents import Node, Scalar, Sequence

CODE = "TL323"
NAME = "dollar-without-shell"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_ESCAPED = re.compile(r"\$\$(?:\{?[A-Za-z_]\w*\}?)")


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each word of a Python command that still has a variable in it."""
    for written in file.containers:
        argv = stated(written.workload.command)
        if written.workload.format != COMPOSE or not argv or written.workload.entrypoint is not None:
            continue
        if argv[0] in SHELLS or not (is_python(argv) or is_training(argv)):
            continue
        for node in _words(at(written.own, "command")):
            match = _ESCAPED.search(node.raw) if isinstance(node, Scalar) else None
            if match:
                yield _finding(written, node, match[0][1:])


def _words(node: Node | None) -> tuple[Node, ...]:
    return node.items if isinstance(node, Sequence) else (node,) if node is not None else ()


def _finding(written: Written, node: Node, name: str) -> Finding:
    return Finding(
        Diagnostic(
            CODE,
            f"the program gets the characters {name}, since no shell runs",
            "write the value, or have a shell run it: [sh, -c, 'exec … \"$" + name + "\"']",
            why="Compose turns $$ into $, and argv is passed on as it is",
            severity=SEVERITY,
            span=node.span,
            field=written.workload.place,
        ),
        NAME,
    )
