"""A command of Compose or Kubernetes passes a literal `$NAME` to a program that is no shell.

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

import posixpath
import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import stated
from launcher.rules.written.commands import SHELLS, is_python, is_training
from launcher.rules.written.model import COMPOSE, DEFECTS, KUBERNETES, Finding, Written, WrittenFile, at
from launcher.yamltree.documents import Node, Scalar, Sequence

CODE = "TL323"
NAME = "dollar-without-shell"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_PLAIN = re.compile(r"(?:--[\w-]+=)?\$\{?(\w+)\}?")
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
    for written in file.containers if file.kind == KUBERNETES else ():
        yield from _of_pod(written)


def _of_pod(written: Written) -> Iterator[Finding]:
    """Yield what stands as `$NAME` in an argv of Kubernetes, which replaces `$(NAME)` alone."""
    argv = (*(stated(written.workload.entrypoint) or ()), *(stated(written.workload.command) or ()))
    if not argv or posixpath.basename(argv[0]) in SHELLS or not (is_python(argv) or is_training(argv)):
        return
    known = {*written.workload.env, *written.workload.secrets}
    for key in ("command", "args"):
        for node in _words(at(written.own, key)):
            match = _PLAIN.fullmatch(node.text) if isinstance(node, Scalar) else None
            if match and match[1] in known:
                yield _finding(written, node, match[0].rpartition("=")[2])


def _words(node: Node | None) -> tuple[Node, ...]:
    return node.items if isinstance(node, Sequence) else (node,) if node is not None else ()


def _finding(written: Written, node: Node, name: str) -> Finding:
    fix = "write the value, or have a shell run it: [sh, -c, 'exec … \"$" + name + "\"']"
    why = "Compose turns $$ into $, and argv is passed on as it is"
    if written.workload.format == KUBERNETES:
        fix, why = f"write $({name.strip('${}')})", "Kubernetes replaces $(NAME) alone, and no shell runs"
    return Finding(
        Diagnostic(
            CODE,
            f"the program gets the characters {name}, since no shell runs",
            fix,
            why=why,
            severity=SEVERITY,
            span=node.span,
            field=written.workload.place,
        ),
        NAME,
    )
