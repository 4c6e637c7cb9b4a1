"""A shell stands between the engine and the training process, and passes no SIGTERM on.

**Why it matters**: `docker stop` and Kubernetes signal process 1 alone. A shell that waits for its child ignores it,
the handler that saves a checkpoint never runs, and after the grace period everything is killed: exit 137, no OOM.

**Example**:

```dockerfile
FROM pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
CMD python train.py --num-workers 8
```

**Use instead**:

```dockerfile
FROM pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
CMD ["python", "train.py", "--num-workers", "8"]
```

In a text for `sh -c`, `exec` in front of the last command does the same. A shell form of plain words and a text in
which something follows the training command are told; `trap`, `exec` and `shareProcessNamespace: true` are answers.

**Fix**: none by itself: an ENTRYPOINT of the image gets other arguments by the exec form.

**References**: Dockerfile reference, shell and exec form; Kubernetes, Pod lifecycle: termination.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.rules.written.commands import commands_in, is_training, shell_text, text_of_job
from launcher.rules.written.evidence import command_span
from launcher.rules.written.model import DEFECTS, KUBERNETES, SHELL, Finding, Instruction, Written, WrittenFile, text_at

CODE = "TL322"
NAME = "shell-hides-signals"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_NO_SIGNAL = "a shell that waits for its child passes SIGTERM on to nobody; the grace period is spent for nothing"
_WHY = (
    "the shell is process 1, waits for its child and passes SIGTERM on to nobody; the grace period is spent for nothing"
)
_ENTRYPOINT = re.compile(r"(?:^|[/_-])(?:docker-?)?entry-?point(?:\.(?:sh|bash))?$", re.IGNORECASE)
_HANDLED = re.compile(r"\b(?:trap|exec|wait)\b")


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning where the command is such a shell; a `script` has its signals from the preflight."""
    told = text_of_job(plan.job)
    waits = _waits(told[0]) if told and told[1] == "command" else None
    if waits is not None:
        first, following = waits
        fix = f"write it as script, whose signals the preflight hands on, or exec in front of {first} and drop the rest"
        yield _waiting(first, following, fix)._replace(why=_NO_SIGNAL, span=plan.job.span("command"), field="command")


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each shell in front of a training command that can't pass a signal on."""
    last = {each.name: each for each in file.instructions if each.name in {"CMD", "ENTRYPOINT", "FROM"}}
    for each in (last.get("CMD"), last.get("ENTRYPOINT")):
        if each is not None and not each.exec_form and not (each.name == "CMD" and "ENTRYPOINT" in last):
            yield from _shell_form(file, each)
    for written in file.containers:
        yield from _text(written)
    if file.kind == SHELL and _ENTRYPOINT.search(file.source.span(0, 0).file):
        yield from _of_script(file)


def _of_script(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning where the last command of an image's entrypoint script trains, and the script waits for it."""
    last = file.commands[-1] if file.commands else ()
    argv = tuple(each.text for each in last)
    if not is_training(argv) or _HANDLED.search(file.text[last[0].start : last[-1].end]) or "trap" in file.text:
        return
    diagnostic = Diagnostic(
        CODE,
        f"the script waits for {argv[0]} as process 1 and passes no signal on",
        f"write exec in front of {argv[0]}",
        why=_WHY,
        severity=SEVERITY,
        span=file.source.span(last[0].start, last[-1].end),
    )
    yield Finding(diagnostic, NAME)


def _shell_form(file: WrittenFile, each: Instruction) -> Iterator[Finding]:
    words = [word.text for word in each.words]
    if not any(map(is_training, commands_in(each.value))) or _HANDLED.search(each.value):
        return
    plain = all(word.known for word in each.words) and len(commands_in(each.value)) == 1
    form = f"write {each.name} {json.dumps(words)}" if plain else f"write {each.name} exec … as its last command"
    yield Finding(
        Diagnostic(
            CODE,
            f"{each.name} in shell form makes /bin/sh process 1 in front of {words[0]}",
            f"{form}, or start the container with --init",
            why=_WHY,
            severity=SEVERITY,
            span=file.source.span(each.start, each.end),
        ),
        NAME,
    )


def _text(written: Written) -> Iterator[Finding]:
    workload = written.workload
    argv = written.argv
    text = shell_text(argv)
    waits = None if text is None or text_at(written.pod, "shareProcessNamespace") == "true" else _waits(text)
    if waits is None:
        return
    first, following = waits
    fix = f"write exec in front of {first} and drop what follows"
    if workload.format == KUBERNETES:
        fix += ", or set shareProcessNamespace: true"
    yield Finding(_waiting(first, following, fix)._replace(span=command_span(workload), field=workload.place), NAME)


def _waits(text: str) -> tuple[str, str] | None:
    """Return the training program that a shell's text waits for, and the one that follows it; None where none does."""
    if _HANDLED.search(text):
        return None
    commands = commands_in(text)
    trains = next((index for index, each in enumerate(commands) if is_training(each)), None)
    if trains is None or trains == len(commands) - 1 or re.search(r"\|(?!\|)|&(?!&)(?!\d)(?<!>&)", _unpaired(text)):
        return None
    return commands[trains][0], commands[trains + 1][0]


def _waiting(first: str, following: str, fix: str) -> Diagnostic:
    message = f"a shell waits for {first}, since {following} follows it, and passes no signal on"
    return Diagnostic(CODE, message, fix, why=_WHY, severity=SEVERITY)


def _unpaired(text: str) -> str:
    """Return the text without `&&`, `||` and redirections, so that a pipe or a background job stands out."""
    return re.sub(r"&&|\|\||[0-9]?>&[0-9-]?|&>>?", " ", text)
