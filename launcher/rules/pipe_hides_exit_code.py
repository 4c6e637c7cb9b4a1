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

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from launcher.diagnostics import Diagnostic, Severity
from launcher.job.shell_commands import commands_of
from launcher.plan.launch_plan import LaunchPlan
from launcher.rules.written.commands import is_training, shell_text, text_of_job
from launcher.rules.written.evidence import command_span
from launcher.rules.written.model import PRACTICE, Finding, WrittenFile

CODE = "TL329"
NAME = "pipe-hides-exit-code"
SEVERITY = Severity.INFO
GROUP = PRACTICE


class _Pipe(NamedTuple):
    """A training command on the left of a pipe, its program, and the program that it is piped into."""

    command: str
    program: str
    into: str


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning where the job's own script, or its text for a shell, pipes training into something else."""
    told = text_of_job(plan.job)
    pipe = _pipe(told[0]) if told else None
    if told is None or pipe is None:
        return
    fix = f"write the command without its pipe; `trainlaunch logs` has what it prints: {pipe.command}"
    yield _diagnostic(pipe, fix)._replace(severity=Severity.WARNING, span=plan.job.span(told[1]), field=told[1])


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each text of a shell that pipes training into something else without pipefail."""
    for written in file.containers:
        workload = written.workload
        text = shell_text(written.argv)
        pipe = None if text is None else _pipe(text)
        if pipe is not None:
            found = _diagnostic(pipe, "write set -o pipefail; in front (bash), or let the engine keep the log")
            yield Finding(found._replace(span=command_span(workload), field=workload.place), NAME)


def _pipe(text: str) -> _Pipe | None:
    """Return the first pipe of a shell's text that hides how training ended."""
    if "pipefail" in text or "PIPESTATUS" in text:
        return None
    for command, into in pairwise(commands_of(text)):
        if command.after in {"|", "|&"} and is_training(command.words):
            typed = text[command.start : into.start].rstrip().removesuffix(command.after)
            return _Pipe(" ".join(typed.split()), command.words[0], into.words[0])
    return None


def _diagnostic(pipe: _Pipe, fix: str) -> Diagnostic:
    return Diagnostic(
        CODE,
        f"the container ends with the exit code of {pipe.into}, whatever {pipe.program} ends with",
        fix,
        why="a pipeline's status is that of its last command",
        severity=SEVERITY,
    )
