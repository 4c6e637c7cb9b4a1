"""Shells that keep signals from training, or hide its exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from trainlaunch.diagnostics import Severity
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import at_container, container_rule, text_rule
from trainlaunch.rules.sources.container_facts import command_span
from trainlaunch.rules.sources.instructions import instruction_text
from trainlaunch.rules.sources.near_scripts import near_script
from trainlaunch.rules.sources.programs import SERVING, Argv, program
from trainlaunch.rules.sources.source_text import (
    KUBERNETES,
    PRACTICE,
    SHELL,
    Instruction,
    SourceContainer,
    SourceText,
    text_at,
)
from trainlaunch.rules.sources.training_commands import (
    BACKGROUND,
    BACKGROUND_WHY,
    HANDLED,
    PIPELINE_WHY,
    commands_in,
    hiding_pipe,
    is_training,
    shell_text,
    waiting_shell,
    waits_in_vain,
)

_WHY = (
    "the shell is process 1, waits for its child and passes SIGTERM on to nobody; the grace period is spent for nothing"
)
_ENTRYPOINT = re.compile(r"(?:^|[/_-])(?:docker-?)?entry-?point(?:\.(?:sh|bash))?$", re.IGNORECASE)
_SCRIPT = re.compile(r"(?:^|/)(?:[^/.]+|[^/]+\.(?:sh|bash|sbatch))$")
_BATCH = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*?#(?:SBATCH|PBS|BSUB|\$)[ \t]")


@text_rule("TL322", Severity.WARNING)
def shell_hides_signals(file: SourceText) -> Iterator[Problem]:
    """A shell stands in front of a training command and can't pass a signal on."""
    last = {each.name: each for each in file.instructions if each.name in {"CMD", "ENTRYPOINT", "FROM"}}
    for each in (last.get("CMD"), last.get("ENTRYPOINT")):
        if each is not None and each.words and not each.exec_form and not (each.name == "CMD" and "ENTRYPOINT" in last):
            yield from _shell_form(file, each)
    for container in file.containers:
        yield from at_container(container, _waiting(file, container))
    if file.kind == SHELL and _ENTRYPOINT.search(file.source.span(0, 0).file):
        yield from _of_script(file)


def _of_script(file: SourceText) -> Iterator[Problem]:
    """Yield a warning where the last command of an image's entrypoint script trains, and the script waits for it."""
    last = file.commands[-1] if file.commands else ()
    argv = tuple(each.text for each in last)
    if not is_training(argv) or HANDLED.search(file.text[last[0].start : last[-1].end]) or "trap" in file.text:
        return
    yield Problem(
        f"the script waits for {argv[0]} as process 1 and passes no signal on",
        f"write exec in front of {argv[0]}",
        _WHY,
        span=file.source.span(last[0].start, last[-1].end),
        severity=_of_lost_signal(file, [argv]),
    )


def _shell_form(file: SourceText, each: Instruction) -> Iterator[Problem]:
    words = [word.text for word in each.words]
    words = ["env", *words] if re.match(r"[A-Za-z_]\w*=", words[0]) else words  # which a list can't set
    commands = commands_in(each.value)
    if not any(map(is_training, commands)) or HANDLED.search(each.value):
        return
    plain = all(word.known for word in each.words) and len(commands) == 1
    form = f"write {each.name} {json.dumps(words)}" if plain else f"write {each.name} exec … as its last command"
    yield Problem(
        f"{each.name} in shell form makes /bin/sh process 1 in front of {program(tuple(words)).name or words[0]}",
        f"{form}, or start the container with --init",
        _WHY,
        span=file.source.span(each.start, each.end),
        severity=_of_lost_signal(file, commands),
    )


def _of_lost_signal(file: SourceText, commands: Iterable[Argv]) -> Severity | None:
    """Return how grave it is that a signal doesn't reach training: an info where its script is there and takes none."""
    trained = [program(each) for each in commands if is_training(each)]
    scripts = [near_script(file.source.span(0, 0).file, each.script) for each in trained]
    deaf = all(each is not None and not each.hears for each in scripts) and not any(each.launched for each in trained)
    return Severity.INFO if deaf else None


def _waiting(file: SourceText, container: SourceContainer) -> Iterator[Problem]:
    text = shell_text(container.argv)
    if text is None or text_at(container.pod, "shareProcessNamespace") == "true":
        return
    waits = waiting_shell(text)
    if waits is not None:
        first, following = waits
        shared = ", or set shareProcessNamespace: true" * (container.workload.format == KUBERNETES)
        yield Problem(
            f"a shell waits for {first}, since {following} follows it, and passes no signal on",
            f"write exec in front of {first} and drop what follows{shared}",
            _WHY,
            span=command_span(container.workload),
            severity=Severity.INFO if container.purpose.verdict == SERVING else _of_lost_signal(file, container.argvs),
        )


@container_rule("TL329", Severity.INFO, group=PRACTICE)
def pipe_hides_exit_code(container: SourceContainer) -> Iterator[Problem]:
    """A shell's text pipes training into something else without pipefail."""
    pipe = hiding_pipe(shell_text(container.argv) or "")
    if pipe is not None:
        yield Problem(
            f"the container ends with the exit code of {pipe.into}, whatever {pipe.program} ends with",
            "write set -o pipefail; in front (bash), or let the engine keep the log",
            PIPELINE_WHY,
            span=command_span(container.workload),
        )


@text_rule("TL359", Severity.WARNING)
def background_hides_exit_code(file: SourceText) -> Iterator[Problem]:
    """A shell's text trains in the background and then waits for nothing certain."""
    problem = Problem(
        BACKGROUND, "let torchrun start the ranks, or wait for each process by its number: wait $!", BACKGROUND_WHY
    )
    for container in file.containers:
        if waits_in_vain(shell_text(container.argv) or ""):
            yield problem._replace(span=command_span(container.workload), field=container.workload.place)
    waits = [each[0] for each in file.commands if len(each) == 1 and each[0].text == "wait"]
    if waits and _SCRIPT.search(file.source.span(0, 0).file) and waits_in_vain(file.text):
        by_hand = _BATCH.match(file.text) is None  # where nobody asks for the exit code
        severity = Severity.INFO if by_hand else None
        yield problem._replace(span=file.source.span(waits[-1].start, waits[-1].end), severity=severity)
    for each in file.instructions:
        if each.name in {"CMD", "ENTRYPOINT"} and waits_in_vain(instruction_text(each) or ""):
            yield problem._replace(span=file.source.span(each.start, each.end))
