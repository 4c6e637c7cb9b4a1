"""Training runs in the background of a shell whose plain `wait` ends with 0.

**Why it matters**: `wait` without a process returns 0 whatever the jobs ended with, and the shell passes no SIGTERM
on to them: a failed run looks finished, and no checkpoint is saved at a stop.

**Example**:

```shell
docker run --rm --gpus all --shm-size=8g trainer:1 bash -c 'python train.py --rank 0 & python train.py --rank 1 & wait'
```

**Use instead**:

```shell
docker run --rm --gpus all --shm-size=8g trainer:1 torchrun --nproc_per_node 2 train.py
```

**Fix**: none by itself: `wait -n`, or `wait $!` for each process, returns its exit code; a launcher of ranks does
both.

**References**: POSIX, wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity, Span
from launcher.formats.docker.words import statements
from launcher.plan.launch_plan import LaunchPlan
from launcher.rules.written.commands import Argv, commands_in, is_training, shell_text, text_of_job
from launcher.rules.written.evidence import command_span
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile

CODE = "TL359"
NAME = "background-hides-exit-code"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_OPERATORS = frozenset({"<&>", "<&&>", "<||>", "<|>", "<(>", "<)>"})
_MARKED = re.compile(r"<(\$[^<>]*)>")  # what a shell would expand
_SCRIPT = re.compile(r"(?:^|/)(?:[^/.]+|[^/]+\.(?:sh|bash|sbatch))$")
_WAIT = re.compile(r"(?:^|[;&\n])[^\S\n]*wait[^\S\n]*(?:$|[;\n])")


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning where the job's own script, or its text for a shell, does."""
    told = text_of_job(plan.job)
    if told is None or not _hides(told[0]):
        return
    several = sum(words.count("<&>") for words in statements(told[0])) > 1
    fix = (
        """write pids= in front, pids="$pids $!" on a line behind each &, and in wait's place: """
        """for pid in $pids; do wait "$pid" || exit; done"""
        if several
        else 'write in its place: wait "$!"'
    )
    yield _diagnostic(fix)._replace(span=plan.job.span(told[1]), field=told[1])


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each shell's text that trains in the background and then waits for nothing certain."""
    for written in file.containers:
        workload = written.workload
        text = shell_text(written.argv)
        if text is not None and _hides(text):
            yield _finding(command_span(workload), workload.place)
    waits = [each[0] for each in file.commands if len(each) == 1 and each[0].text == "wait"]
    if waits and _SCRIPT.search(file.source.span(0, 0).file) and _hides(file.text):
        yield _finding(file.source.span(waits[-1].start, waits[-1].end), "")
    for each in file.instructions:
        if each.name in {"CMD", "ENTRYPOINT"}:
            text = shell_text(tuple(word.text for word in each.words)) if each.exec_form else each.value
            if text is not None and _hides(text):
                yield _finding(file.source.span(each.start, each.end), "")


def _hides(text: str) -> bool:
    if "&" not in text or not _WAIT.search(text) or "trap" in text:
        return False
    return any(is_training(argv) for words in statements(text) for argv in _background(words))


def _background(words: list[str]) -> Iterator[Argv]:
    """Yield the commands of a statement behind which `&` stands."""
    start = 0
    for index, word in enumerate(words):
        if word == "<&>":
            yield from commands_in(" ".join(_MARKED.sub(r"\1", each) for each in words[start:index]))[-1:]
        if word in _OPERATORS:
            start = index + 1


def _finding(span: Span, place: str) -> Finding:
    fix = "let torchrun start the ranks, or wait for each process by its number: wait $!"
    return Finding(_diagnostic(fix)._replace(span=span, field=place), NAME)


def _diagnostic(fix: str) -> Diagnostic:
    return Diagnostic(
        CODE,
        "training runs in the background, and `wait` ends with 0 whatever it ended with",
        fix,
        why="a plain wait returns 0, and the shell passes no signal on",
        severity=SEVERITY,
    )
