"""`sh -c` gets its text as several words, of which it runs the first.

**Why it matters**: the text of `-c` is one word; what follows becomes `$0`, `$1` …. `sh -c python train.py` starts
Python without the script, which reads an empty stdin and ends with 0.

**Example**:

```shell
docker run --rm --shm-size=4g trainer:1 bash -c python train.py --num-workers 4
```

**Use instead**:

```shell
docker run --rm --shm-size=4g trainer:1 bash -c 'python train.py --num-workers 4'
```

**Fix**: none by itself: quotes go around the whole text.

**References**: POSIX, sh -c.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.commands import SHELLS, Argv
from launcher.rules.written.evidence import command_span
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile

CODE = "TL356"
NAME = "shell-takes-one-word"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
_PROGRAM = re.compile(r"(?:/?[\w.-]+/)*(?:python[\d.]*|torchrun|accelerate|deepspeed|uv|poetry|conda)")


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each container whose shell gets a program as its text, and the program's words behind it."""
    for written in file.containers:
        workload = written.workload
        argv = written.argv
        program = _split_text(argv)
        if program is None:
            continue
        yield Finding(
            Diagnostic(
                CODE,
                f"-c takes one word, so the shell runs {program} alone and drops what follows",
                "write the whole command as one word behind -c, in quotes",
                why="words behind the text of -c are its $0, $1 …, which the text doesn't use",
                severity=SEVERITY,
                span=command_span(workload),
                field=workload.place,
            ),
            NAME,
        )


def _split_text(argv: Argv) -> str | None:
    """Return the program that a shell runs alone: the text of -c is one, and its own arguments stand behind it."""
    if not argv or posixpath.basename(argv[0]) not in SHELLS:
        return None
    flag = next((index for index, each in enumerate(argv[1:], 1) if not re.fullmatch(r"-[a-bd-z]+", each)), len(argv))
    if flag + 2 >= len(argv) or not re.fullmatch(r"-[a-z]*c", argv[flag]):
        return None
    text, behind = argv[flag + 1], argv[flag + 2]
    return text if _PROGRAM.fullmatch(text) and not re.fullmatch(r"-?(?:ba|da|a|z)?sh|_|--|-", behind) else None
