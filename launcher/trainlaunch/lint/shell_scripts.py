"""Shell scripts that a container's command starts, where they lie beside its text: what they surely run."""

from __future__ import annotations

import functools
import itertools
import posixpath
import re
from typing import NamedTuple

from trainlaunch.formats.docker.line import commands
from trainlaunch.formats.docker.literals import Course, Step, literals_of_shell
from trainlaunch.formats.docker.shell_lexer import Word, assignment, tokens
from trainlaunch.repository.regular_files import read_regular
from trainlaunch.rules.sources.near_files import BuildContext, near_file
from trainlaunch.rules.sources.programs import Argv, bare
from trainlaunch.rules.sources.source_text import SourceContainer, context_of
from trainlaunch.rules.sources.training_commands import SHELLS, argvs_of

_NAME = re.compile(r"[^$]*\.(?:ba)?sh")
_SWITCH = re.compile(r"[-+][aefilmuvx]+|--(?:login|noprofile|norc|posix)?")
_WITH_VALUE = re.compile(r"[-+][aefilmuvx]*[oO]")
_TEMPLATE = re.compile(r"\{\{|\{%|<%")
_POSITIONAL = re.compile(r"\$(?:[@*1-9]|\{[@*1-9])")
_RUNS_WORDS = re.compile(r"(?:exec )?\$(?:[@*]|\{@\})")
_CHANGED = re.compile(r"\bshift\b|\bset[ \t]+--")
_DEEPEST = 3
_MOST_CHARACTERS = 300_000  # as of a text that is judged
_MOST_COMMANDS = 25  # of a script, as each rule reads them at each place that starts it
_MOST_NAMES = 100
_SILENT = frozenset({"cd", "echo", "mkdir", "set"})


class ShellScript(NamedTuple):
    """What a script says: the commands that it surely runs, and whether it takes words, or runs those as a command."""

    argvs: tuple[Argv, ...]
    takes_words: bool
    runs_words: bool


def script_started(container: SourceContainer, argv: Argv) -> ShellScript | None:
    """Return the shell script that a command of a container starts; None where it starts none, or it isn't there."""
    name, _ = _named(argv)
    return _script(container.workload.span.file, name, context_of(container)) if name else None


def with_scripts(container: SourceContainer) -> tuple[Argv, ...]:
    """Return the commands of a container, each that starts a script with those of the script behind it."""
    found: dict[Argv, None] = {}
    for argv in container.argvs:
        _follow(container, argv, found, 0)
    return tuple(found)


def _follow(container: SourceContainer, argv: Argv, found: dict[Argv, None], depth: int) -> None:
    if argv in found:
        return
    found[argv] = None
    script = script_started(container, argv) if depth < _DEEPEST and len(found) <= _MOST_COMMANDS else None
    if script is None:
        return
    words = _named(argv)[1]
    for each in (*script.argvs, *([words] if script.runs_words and words else [])):
        for inner in argvs_of(each):
            _follow(container, inner, found, depth + 1)


def _named(argv: Argv) -> tuple[str, Argv]:
    """Return the name of the shell script that a command starts, and the words that this gets; empty for another."""
    rest = bare(argv)
    if rest and posixpath.basename(rest[0]) in SHELLS:
        at = 1
        while at < len(rest) and rest[at].startswith(("-", "+")):
            valued = _WITH_VALUE.fullmatch(rest[at]) is not None
            if not (valued or _SWITCH.fullmatch(rest[at])) or (valued and rest[at + 1 : at + 2] == ("noexec",)):
                return "", ()  # it may run another text, or none
            at += 1 + valued
        rest = rest[at:]
    return (rest[0], rest[1:]) if rest and _NAME.fullmatch(rest[0]) else ("", ())


@functools.lru_cache(maxsize=256)
def _script(named_by: str, name: str, context: BuildContext) -> ShellScript | None:
    path = near_file(named_by, name, context)
    try:
        text = read_regular(path, _MOST_CHARACTERS).decode() if path is not None else "{{"
    except (OSError, ValueError):
        return None
    if _TEMPLATE.search(text):
        return None
    sure = _sure_commands(text)
    runs = not _CHANGED.search(text) and any(_RUNS_WORDS.fullmatch(" ".join(each)) for each in sure)
    return ShellScript(sure, _POSITIONAL.search(text) is not None, runs)


def _sure_commands(text: str) -> tuple[Argv, ...]:
    """Return the commands that a script surely gets to, up to the first that may end it, with what it may export."""
    listed = [*commands(tokens(text))]
    literals, course = literals_of_shell(text, listed), Course()
    sure: dict[Argv, None] = {}
    unclear: dict[str, None] = {}
    for found, operators in listed:
        step = course.step([each for each in literals.filled(iter(found)) if isinstance(each, Word)], operators)
        argv = tuple(each.text for each in step.words)
        if not argv:
            continue
        names = [match[1] for each in argv if (match := assignment(each))]
        if len(names) == len(argv) or (argv[0] == "export" and not step.sure):
            unclear |= dict.fromkeys(names)
        elif step.sure and argv[0] not in _SILENT:
            sure[argv] = None
        if _may_end(argv, step, course.opened) or _goes_elsewhere(argv):
            break
    exported = tuple(f"{each}=${each}" for each in itertools.islice(unclear, _MOST_NAMES))
    return (*itertools.islice(sure, _MOST_COMMANDS), *([("export", *exported)] if exported else []))


def _goes_elsewhere(argv: Argv) -> bool:
    """Return whether what follows a command may be of another folder or repository, or never be reached."""
    entered = argv[0] in {"cd", "pushd"} and re.match(r"\w", "".join(argv[1:2])) is not None
    return entered or argv[:2] in {("git", "clone"), ("sleep", "infinity")}


def _may_end(argv: Argv, step: Step, opened: list[str]) -> bool:
    """Return whether a script may be over with a command, or a loop that is surely run, but for a failure."""
    if argv[0] in {"break", "continue"}:
        return opened[:1] == ["each"]
    if argv[0] not in {"exec", "exit"} or step.inside == "(":
        return False
    if argv[0] == "exec":
        return len(argv) > 1
    fails = re.fullmatch(r"[1-9]\d*", argv[1]) is not None if argv[1:] else step.behind == "||"
    return step.sure or not fails
