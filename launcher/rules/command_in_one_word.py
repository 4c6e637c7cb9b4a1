"""A whole command stands in one word where no shell takes it apart.

**Why it matters**: the runtime looks for a program whose name has blanks in it: `exec: "python train.py": executable
file not found in $PATH`, exit 127 or 128.

**Example**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - {name: train, image: "trainer:1", command: ["python train.py --epochs 3"]}
```

**Use instead**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - {name: train, image: "trainer:1", command: [python, train.py, --epochs, "3"]}
```

**Fix**: none by itself: words with blanks of their own can't be told.

**References**: Kubernetes, Define a command and arguments; Dockerfile reference, exec form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity, Span
from launcher.formats.workload import Known
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, WrittenFile

CODE = "TL357"
NAME = "command-in-one-word"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
_COMMAND = re.compile(r"(?:/[\w./-]*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|bash|sh)[ ]+\S[^\n]*")


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each argv whose program is a command with its arguments."""
    for written in file.containers:
        workload = written.workload
        if workload.format == KUBERNETES and not written.object_kind.strip("object"):
            continue  # a pod inside another format, whose own program takes it apart
        first = workload.entrypoint if isinstance(workload.entrypoint, Known) and workload.entrypoint.value else None
        argv = first or (workload.command if workload.format != KUBERNETES else None)
        if isinstance(argv, Known) and argv.value and _COMMAND.fullmatch(argv.value[0]):
            yield _finding(argv.value[0], argv.span, workload.place)
    for each in file.instructions:
        word = each.words[0].text if each.exec_form and each.words else ""
        if _COMMAND.fullmatch(word):
            yield _finding(word, file.source.span(each.start, each.end), "")


def _finding(word: str, span: Span, place: str) -> Finding:
    program = word.split(maxsplit=1)[0]
    return Finding(
        Diagnostic(
            CODE,
            f"the program is called {word!r}, with its arguments in the name",
            f"write each word of its own: {program}, {word.split()[1]} …, or put sh -c in front",
            why="no shell takes the word apart, so the runtime looks for a file of that name",
            severity=SEVERITY,
            span=span,
            field=place,
        ),
        NAME,
    )
