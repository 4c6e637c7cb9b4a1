"""A docker line of a script that trains asks for a terminal.

**Why it matters**: from cron, systemd or CI there is none: `the input device is not a TTY`, exit 1, before anything
starts.

**Example**:

```shell
docker run -it --rm --init --gpus all --shm-size=8g trainer:1 python train.py
```

**Use instead**:

```shell
docker run --rm --init --gpus all --shm-size=8g trainer:1 python train.py
```

**Fix**: delete -t; `-i` may stay.

**References**: docker run --tty.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.evidence import trains
from launcher.rules.written.model import PRACTICE, SHELL, Finding, WrittenFile

CODE = "TL370"
NAME = "terminal-in-script"
SEVERITY = Severity.INFO
GROUP = PRACTICE


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each docker run with a terminal that trains; CI's are terminal-in-ci's."""
    for written in file.containers if file.kind == SHELL else ():
        rest = written.workload.rest
        if rest.get("--tty") is not True or rest.get("--detach") is True or not trains(written):
            continue
        yield Finding(
            Diagnostic(
                CODE,
                "-t asks for a terminal, and this line runs only where there is one",
                "delete -t",
                why="without a terminal docker stops with `the input device is not a TTY`, exit 1",
                severity=SEVERITY,
                span=written.workload.span,
                field=written.workload.place,
            ),
            NAME,
        )
