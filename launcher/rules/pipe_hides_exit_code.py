"""Training is piped into another program, whose exit code the container ends with.

**Why it matters**: a pipeline's status is that of its last command. `tee` ends with 0 when training fails, so
schedulers, retries and `set -e` see success.

**Example**:

```shell
docker run --gpus all --shm-size=16g trainer:1 bash -c 'python train.py 2>&1 | tee /work/train.log'
```

**Use instead**:

```shell
docker run --gpus all --shm-size=16g trainer:1 bash -c 'set -o pipefail; python train.py 2>&1 | tee /work/train.log'
```

**Fix**: none by itself; `set -o pipefail` in bash, or let the engine keep the log.

**References**: bash manual, Pipelines; dash has no pipefail before 0.5.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.commands import commands_in, is_training, shell_text
from launcher.rules.written.evidence import command_span
from launcher.rules.written.model import PRACTICE, Finding, WrittenFile

CODE = "TL329"
NAME = "pipe-hides-exit-code"
SEVERITY = Severity.INFO
GROUP = PRACTICE


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each text of a shell that pipes training into something else without pipefail."""
    for written in file.containers:
        workload = written.workload
        argv = written.argv
        text = shell_text(argv)
        if text is None or "pipefail" in text or "PIPESTATUS" in text:
            continue
        head, pipe, tail = re.sub(r"\|\|", "  ", text).partition("|")
        last = commands_in(head)[-1:]
        if not pipe or not last or not is_training(last[0]) or not tail.strip():
            continue
        yield Finding(
            Diagnostic(
                CODE,
                f"the container ends with the exit code of {tail.split()[0]}, whatever {last[0][0]} ends with",
                "write set -o pipefail; in front (bash), or let the engine keep the log",
                why="a pipeline's status is that of its last command",
                severity=SEVERITY,
                span=command_span(workload),
                field=workload.place,
            ),
            NAME,
        )
