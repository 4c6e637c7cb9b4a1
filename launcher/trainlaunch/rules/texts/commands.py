"""Commands whose words don't arrive as meant."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Set

from trainlaunch.diagnostics import Severity, Span
from trainlaunch.formats.workload import Known, stated
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import at_container, text_rule
from trainlaunch.rules.sources.container_facts import command_span
from trainlaunch.rules.sources.instructions import (
    instruction_text,
    is_of_posix_shell,
    process_of,
    script_given_command,
    stages,
    without_entrypoint,
)
from trainlaunch.rules.sources.programs import Argv, program
from trainlaunch.rules.sources.source_text import (
    COMPOSE,
    KUBERNETES,
    Instruction,
    SourceContainer,
    SourceText,
    at,
)
from trainlaunch.rules.sources.training_commands import (
    SHELLS,
    commands_in,
    is_python,
    is_training,
    lone_program,
    shell_text,
)
from trainlaunch.yamltree.tolerant import Node, Scalar, Sequence

_COMMAND = re.compile(r"(?:/[\w./-]*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|bash|sh)[ ]+\S[^\n]*")
_ASSIGNS = re.compile(r"([A-Z_][A-Z0-9_]*)=.*")
_OF_HEROKU = re.compile(r"heroku[^/]*$", re.IGNORECASE)  # whose own file has the command to start
_USES = re.compile(r"\$(?:[@*]|\{[@*]|[0-9])")
_TEXT_FOLLOWS = re.compile(r"-[a-z]*c")
_PLAIN = re.compile(r"(?:--[\w-]+=)?\$\{?(\w+)\}?")
_ESCAPED = re.compile(r"\$\$(?:\{?[A-Za-z_]\w*\}?)")


@text_rule("TL357", Severity.ERROR)
def command_in_one_word(file: SourceText) -> Iterator[Problem]:
    """An argv's program is a command with its arguments."""
    for container in file.containers:
        workload = container.workload
        if workload.format == KUBERNETES and not container.object_kind.strip("object"):
            continue  # a pod inside another format, whose own program takes it apart
        first = workload.entrypoint if isinstance(workload.entrypoint, Known) and workload.entrypoint.value else None
        argv = first or (workload.command if workload.format != KUBERNETES else None)
        if isinstance(argv, Known) and argv.value:
            # The image's ENTRYPOINT may be a shell that takes the word apart.
            severity = None if first else without_entrypoint(stated(workload.image) or "")
            problem = _no_program(argv.value[0], severity)
            if problem is not None:
                yield problem._replace(span=argv.span, field=workload.place)
    for stage in stages(file):
        last = process_of(file, stage)
        own = last.get("ENTRYPOINT")
        for each in last.values():
            word = each.words[0].text if each.words else ""
            quoted = len(each.words) == 1 and " " in word and each.words[0].known  # whole, for a shell
            alone = each.exec_form or (quoted and is_of_posix_shell(stage))
            if alone and (each is own or own is None):
                by_image = own is None and each.exec_form
                base = next((word for word in stage[0].value.split() if not word.startswith("--")), "")
                severity = without_entrypoint(base) if by_image else None
                severity = Severity.INFO if _OF_HEROKU.search(file.source.span(0, 0).file) else severity
                problem = _no_program(word, severity)
                if problem is not None:
                    yield problem._replace(span=file.source.span(each.start, each.end))


def _no_program(word: str, severity: Severity | None) -> Problem | None:
    """Return what is wrong with a program that is a command, or an assignment where no ENTRYPOINT may take it."""
    why = "no shell reads the words, so the runtime looks for a file of that name"
    assigned = _ASSIGNS.fullmatch(word)
    if assigned and severity is not Severity.INFO:
        return Problem(
            f"the program is called {assigned[1]}=…, which only a shell takes for a variable",
            f"put env in front, or {assigned[1]} among the variables of the container or image",
            why,
            severity=severity,
        )
    if _COMMAND.fullmatch(word):
        program, argument = word.split()[:2]
        return Problem(
            f"the program is called {word!r}, with its arguments in the name",
            f"write each word of its own: {program}, {argument} …, or put sh -c in front",
            why,
            severity=severity,
        )
    return None


@text_rule("TL356", Severity.ERROR)
def shell_takes_one_word(file: SourceText) -> Iterator[Problem]:
    """A shell gets a program as its text, and the program's words behind it."""
    for container in file.containers:
        yield from at_container(container, _first_word(container.argv, command_span(container.workload)))
    last = process_of(file, ([*stages(file)] or [[]])[-1])
    parts = [each for each in (last.get("ENTRYPOINT"), last.get("CMD")) if each is not None and each.words]
    if parts and all(each.exec_form for each in parts):
        argv = tuple(word.text for each in parts for word in each.words)
        told = parts[-1 if _TEXT_FOLLOWS.fullmatch(parts[0].words[-1].text) else 0]
        yield from _first_word(argv, file.source.span(told.start, told.end))


def _first_word(argv: Argv, span: Span) -> Iterator[Problem]:
    program = lone_program(argv)
    if program is not None:
        yield Problem(
            f"-c takes one word, so the shell runs {program} alone and drops what follows",
            "write the whole command as one word behind -c, in quotes",
            "words behind the text of -c are its $0, $1 …, which the text doesn't use",
            span=span,
        )


@text_rule("TL358", Severity.WARNING)
def entrypoint_eats_arguments(file: SourceText) -> Iterator[Problem]:
    """An ENTRYPOINT is a shell's text that uses no arguments, or one script, and there is a command behind it."""
    for container in file.containers:
        yield from at_container(container, _eaten(container))
    stage = [*stages(file)][-1:] or [[]]
    last = process_of(file, stage[0])
    each = last.get("ENTRYPOINT")
    text = instruction_text(each) if each is not None else None
    if each is None or text is None or _USES.search(text):
        return
    # Without a CMD nothing is known to be lost; of a training command's arguments it is worth saying.
    if not any(map(is_training, commands_in(text))) and not (each.exec_form and "CMD" in last):
        return
    lost = "the CMD" if "CMD" in last else "what stands behind the image in docker run"
    yield Problem(
        f"the ENTRYPOINT is a shell's text, so {lost} is dropped",
        'write the ENTRYPOINT as a JSON list of words, or "$@" at the end of the text behind sh -c',
        "arguments become $0, $1 … of the text, which doesn't use them",
        span=file.source.span(each.start, each.end),
        severity=None if "CMD" in last else Severity.INFO,
    )


def _eaten(container: SourceContainer) -> Iterator[Problem]:
    """Yield a warning where an entrypoint, a container's or its image's, takes no command, and one stands behind it."""
    script = script_given_command(container)
    if script:
        yield _handed_to(script, container)
    first, rest = stated(container.workload.entrypoint), container.workload.command
    text = shell_text(first or ())
    if not first or text is None or first[-1] != text or not isinstance(rest, Known) or not rest.value:
        return
    if not _USES.search(text):
        yield Problem(
            f"the entrypoint is a shell's text, so the command behind it, {_named(rest.value)}, is dropped",
            'write "$@" at the end of the text, or the whole command into it',
            "words behind the text of -c are its $0, $1 …, which it doesn't use",
            span=rest.span,
        )


def _handed_to(script: str, container: SourceContainer) -> Problem:
    """Return what is said of a whole command that the script of the image's ENTRYPOINT gets."""
    key = "entrypoint: " if container.workload.format == COMPOSE else "--entrypoint "
    return Problem(
        f"the image's ENTRYPOINT runs {script}, which gets {_named(container.argv)} as its arguments",
        f"write {key}{container.argv[0]} with the other words as the command, or make the ENTRYPOINT a CMD",
        "a container's command replaces CMD alone; an ENTRYPOINT gets it as its arguments",
        span=command_span(container.workload),
    )


def _named(argv: Argv) -> str:
    """Return the program and the script of a command: its other words may be somebody's secret."""
    found = program(argv)
    return " ".join(filter(None, (found.name, found.script))) or "whatever it is"


@text_rule("TL323", Severity.WARNING)
def dollar_without_shell(file: SourceText) -> Iterator[Problem]:
    """A word of a Python command still has a variable in it."""
    for container in file.containers:
        argv = stated(container.workload.command)
        if container.workload.format != COMPOSE or not argv or container.workload.entrypoint is not None:
            continue
        if argv[0] in SHELLS or not (is_python(argv) or is_training(argv)):
            continue
        for node in _words(at(container.own, "command")):
            match = _ESCAPED.search(node.raw) if isinstance(node, Scalar) else None
            if match:
                yield _literal(container, node, match[0][1:])
    for container in file.containers if file.kind == KUBERNETES else ():
        yield from _of_pod(container)
    names = {key: _names(file, key) for key in ("ENV", "ARG")}
    before: set[str] = set()  # stages with an ENTRYPOINT, which gets the CMD of one that is made from them
    for stage in stages(file):
        words = [each for each in stage[0].value.lower().split() if not each.startswith("--")]
        own = "ENTRYPOINT" in process_of(file, stage)
        if own or before.isdisjoint(words[:1]):
            yield from _of_image(file, stage, names)
        if own or not before.isdisjoint(words[:1]):
            before.update(words[-1:])


def _of_image(file: SourceText, stage: list[Instruction], names: Mapping[str, Set[str]]) -> Iterator[Problem]:
    """Yield a variable of the image in a list of words, which no shell reads."""
    last = process_of(file, stage)
    for each in last.values():
        first = last.get("ENTRYPOINT", each)
        argv = tuple(word.text for word in first.words)
        listed = each.exec_form and first.exec_form  # else the CMD is dropped
        if not listed or not argv or posixpath.basename(argv[0]) in SHELLS or not is_python(argv):
            continue
        for match in filter(None, (_PLAIN.fullmatch(word.text) for word in each.words)):
            if match[1] in names["ENV"] | names["ARG"]:
                only = "" if match[1] in names["ENV"] else f", with ENV {match[1]}, since an ARG is of the build alone"
                yield Problem(
                    f"the program gets the characters {match[0].rpartition('=')[2]}, since no shell runs",
                    f"write the value, or {each.name} exec … without the list{only}",
                    "a list of words is passed on as it is",
                    span=file.source.span(each.start, each.end),
                )


def _names(file: SourceText, key: str) -> Set[str]:
    values = " ".join(each.value for each in file.instructions if each.name == key)
    return {each.partition("=")[0] for each in values.split()}


def _of_pod(container: SourceContainer) -> Iterator[Problem]:
    """Yield what stands as `$NAME` in an argv of Kubernetes, which replaces `$(NAME)` alone."""
    workload = container.workload
    argv = (*(stated(workload.entrypoint) or ()), *(stated(workload.command) or ()))
    if not argv or posixpath.basename(argv[0]) in SHELLS or not (is_python(argv) or is_training(argv)):
        return
    known = {*workload.env, *workload.secrets}
    for key in ("command", "args"):
        for node in _words(at(container.own, key)):
            match = _PLAIN.fullmatch(node.text) if isinstance(node, Scalar) else None
            if match and match[1] in known:
                yield _literal(container, node, match[0].rpartition("=")[2])


def _words(node: Node | None) -> tuple[Node, ...]:
    return node.items if isinstance(node, Sequence) else (node,) if node is not None else ()


def _literal(container: SourceContainer, node: Node, name: str) -> Problem:
    fix = "write the value, or have a shell run it: [sh, -c, 'exec … \"$" + name + "\"']"
    why = "Compose turns $$ into $, and argv is passed on as it is"
    if container.workload.format == KUBERNETES:
        fix, why = f"write $({name.strip('${}')})", "Kubernetes replaces $(NAME) alone, and no shell runs"
    return Problem(
        f"the program gets the characters {name}, since no shell runs", fix, why, container.workload.place, node.span
    )
