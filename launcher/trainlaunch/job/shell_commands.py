"""The simple commands of a shell text and the program of each, as far as the text tells; nothing is run or expanded."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trainlaunch.formats.docker.shell_lexer import Word, assignment, tokens

_REDIRECTS = frozenset("<>")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What runs the program that stands behind it, with those of its options that have a value of their own.
_WRAPPERS = {
    "env": _words("-u --unset -C --chdir"),
    "exec": _words("-a"),
    "nice": _words("-n --adjustment"),
    "ionice": _words("-c -n"),
    "timeout": _words("-k --kill-after -s --signal"),
    "time": _words("-f -o"),
    "stdbuf": _words("-i -o -e"),
    "taskset": _words("-c"),
    "numactl": _words("-N -m -i -C -p"),
    "nsys": _words("-o -t -s -w -c -f -e"),
    "sudo": _words("-u -g -D"),
    "conda": _words("-n -p --name --prefix --cwd"),
    "mamba": _words("-n -p --name --prefix --cwd"),
    "micromamba": _words("-n -p --name --prefix --cwd"),
    "uv": _words("-p --python --with --extra --group --project --directory"),
    **dict.fromkeys(
        ("command", "nohup", "setsid", "poetry", "pipenv", "pixi", "tini", "dumb-init", "catatonit", "!"),
        frozenset[str](),
    ),
}
_BEFORE_PROGRAM = _words("run profile launch then do else if while until { (")
_NUMBER_BEFORE_PROGRAM = r"\d[\d.,:-]*[smhd]?|0x[0-9a-fA-F]+"


class ShellCommand(NamedTuple):
    """One command: its words, where it begins, what ends it, and what stood before it (an operator or ``)."""

    words: tuple[str, ...]
    start: int
    before: str
    after: str

    @property
    def background(self) -> bool:
        """Whether the shell goes on without waiting for it."""
        return self.after == "&"


def commands_of(text: str, *, marked: bool = False) -> Iterator[ShellCommand]:
    """Yield the commands of `text` in their order. What a shell would expand stands in the words as it is typed.

    `marked`: it stands in `<>` there.
    """
    words: list[str] = []
    start, before, redirected = 0, "", False
    for token in tokens(text):
        if isinstance(token, Word):
            if not words:
                start = token.start
            if not redirected:
                words.append(token.marked if marked else token.text)
            redirected = False
        elif not _REDIRECTS.isdisjoint(token.text):
            redirected = True
        else:
            if words:
                yield ShellCommand(tuple(words), start, before, token.text)
            words, before, redirected = [], token.text, False
    if words:
        yield ShellCommand(tuple(words), start, before, "")


def program_at(words: Sequence[str]) -> int | None:
    """Return where the program stands behind assignments and programs that run another."""
    valued: frozenset[str] | None = None
    at = 0
    while at < len(words):
        word = words[at]
        name = posixpath.basename(word)
        if name in _WRAPPERS:
            valued = _WRAPPERS[name]
        elif valued is not None and word in valued:
            at += 1
        elif not assignment(word) and word not in _BEFORE_PROGRAM and not _between(word, valued):
            return at
        at += 1
    return None


def _between(word: str, valued: frozenset[str] | None) -> bool:
    """Whether a word can stand between a wrapper and its program: an option, a duration, a mask of CPUs."""
    return valued is not None and (word.startswith("-") or re.fullmatch(_NUMBER_BEFORE_PROGRAM, word) is not None)
