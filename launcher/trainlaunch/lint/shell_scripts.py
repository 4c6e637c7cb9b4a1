"""Shell scripts that a container's command starts, where they lie beside its text: what they surely run."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from trainlaunch.formats.docker.line import commands
from trainlaunch.formats.docker.literals import literals_of_shell
from trainlaunch.formats.docker.shell_lexer import tokens
from trainlaunch.repository.regular_files import read_regular
from trainlaunch.rules.sources.near_scripts import near_file
from trainlaunch.rules.sources.programs import Argv, bare
from trainlaunch.rules.sources.source_text import SourceContainer, context_of
from trainlaunch.rules.sources.training_commands import SHELLS, argvs_of
from trainlaunch.units import MIB

_NAME = re.compile(r"[^$]*\.(?:ba)?sh")
_WITH_VALUE = frozenset({"-o", "+o", "-O", "+O"})
_OPENS, _CLOSES = frozenset({"if", "case", "select", "{"}), frozenset({"fi", "esac", "}"})
_TEMPLATE = re.compile(r"\{\{|\{%|<%")
_POSITIONAL = re.compile(r"\$(?:[@*1-9]|\{[@*1-9])")
_ALL_WORDS = frozenset({"$@", "$*", "${@}"})
_DEEPEST = 3


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
    return tuple(found for argv in container.argvs for found in _followed(container, argv, 0))


def _followed(container: SourceContainer, argv: Argv, depth: int) -> Iterator[Argv]:
    yield argv
    script = script_started(container, argv) if depth < _DEEPEST else None
    if script is None:
        return
    words = _named(argv)[1]
    for each in (*script.argvs, *([words] if script.runs_words and words else [])):
        for inner in argvs_of(each):
            yield from _followed(container, inner, depth + 1)


def _named(argv: Argv) -> tuple[str, Argv]:
    """Return the name of the shell script that a command starts, and the words that this gets; empty for another."""
    rest = bare(argv)
    if rest and posixpath.basename(rest[0]) in SHELLS:
        at = 1
        while at < len(rest) and rest[at].startswith(("-", "+")):
            if re.fullmatch(r"-[a-z]*c", rest[at]):
                return "", ()
            at += 1 + (rest[at] in _WITH_VALUE)
        rest = rest[at:]
    return (rest[0], rest[1:]) if rest and _NAME.fullmatch(rest[0]) else ("", ())


@functools.lru_cache(maxsize=256)
def _script(named_by: str, name: str, context: str) -> ShellScript | None:
    path = near_file(named_by, name, context)
    try:
        text = read_regular(path, MIB).decode() if path is not None else "{{"
    except (OSError, ValueError):
        return None
    if _TEMPLATE.search(text):
        return None
    found = [*_commands(text)]
    runs = any(words[0] in _ALL_WORDS or words[:2] in {("exec", each) for each in _ALL_WORDS} for words, _ in found)
    sure = tuple(words for words, sure in found if sure)
    return ShellScript(sure, _POSITIONAL.search(text) is not None, runs)


def _commands(text: str) -> Iterator[tuple[Argv, bool]]:
    """Yield the commands of a script, and whether it surely gets to each: not in a branch, nor behind its end."""
    literals = literals_of_shell(text, [*commands(tokens(text))])
    opened: list[str] = []
    ended, unsure = False, False
    for found, operators in commands(literals.filled(tokens(text))):
        words = tuple(each.text for each in found)
        words = words[1:] if words[:1] in {("do",), ("then",), ("else",)} else words
        if words and (words[0] in _OPENS or (words[0] == "function" and words[-1] == "{")):
            opened.append("{" if words[-1] == "{" else words[0])
        if words:
            yield words, not (opened or ended or unsure)
            ended = ended or _ends(words, opened, unsure)
        if words and words[0] in _CLOSES and opened:
            opened.pop()
        last = [each.text for each in operators if each.text in {"&&", "||", ";", "\n", "|", "&"}][-1:]
        if words or last:
            unsure = last == ["||"] or (last == ["&&"] and (unsure or words[:1] in {("[",), ("[[",), ("test",)}))


def _ends(words: Argv, opened: list[str], unsure: bool) -> bool:
    """Return whether a script may be over with a command, but for a failure: the body of a function isn't run yet."""
    if "{" in opened or words[0] not in {"exec", "exit"}:
        return False
    if words[0] == "exec":
        return len(words) > 1
    if opened[-1:] == ["case"]:  # of its options, mostly for help
        return False
    return words[1:] == ("0",) or (not unsure and (words[1:] == () or not opened))
