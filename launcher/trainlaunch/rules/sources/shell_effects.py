"""What a shell's text does to the training that it runs: who gets its signals, and whose exit code is seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from trainlaunch.formats.docker.shell_lexer import statements
from trainlaunch.job.shell_commands import commands_of
from trainlaunch.rules.sources.training_commands import Argv, commands_in, is_training

BACKGROUND = "training runs in the background, and `wait` ends with 0 whatever it ended with"
BACKGROUND_WHY = "a plain wait returns 0, and the shell passes no signal on"
PIPELINE_WHY = "a pipeline's status is that of its last command"
HANDLED = re.compile(r"\b(?:trap|exec|wait)\b")
_OPERATORS = frozenset({"<&>", "<&&>", "<||>", "<|>", "<(>", "<)>"})
_MARKED = re.compile(r"<(\$[^<>]*)>")  # what a shell would expand
_WAIT = re.compile(r"(?:^|[;&\n])[^\S\n]*wait[^\S\n]*(?:$|[;\n])")


class Pipe(NamedTuple):
    """A training command on the left of a pipe, its program, and the program that it is piped into."""

    command: str
    program: str
    into: str


def hiding_pipe(text: str) -> Pipe | None:
    """Return the first pipe of a shell's text that hides how training ended."""
    if "pipefail" in text or "PIPESTATUS" in text:
        return None
    for command, into in pairwise(commands_of(text)):
        if command.after in {"|", "|&"} and is_training(command.words):
            typed = text[command.start : into.start].rstrip().removesuffix(command.after)
            return Pipe(" ".join(typed.split()), command.words[0], into.words[0])
    return None


def waits_in_vain(text: str) -> bool:
    """Return whether a shell's text trains in the background and then waits for nothing certain."""
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


def waiting_shell(text: str) -> tuple[str, str] | None:
    """Return the training program that a shell's text waits for, and the one that follows it; None where none does."""
    if HANDLED.search(text):
        return None
    commands = commands_in(text)
    trains = next((index for index, each in enumerate(commands) if is_training(each)), None)
    if trains is None or trains == len(commands) - 1 or re.search(r"\|(?!\|)|&(?!&)(?!\d)(?<!>&)", _unpaired(text)):
        return None
    return commands[trains][0], commands[trains + 1][0]


def _unpaired(text: str) -> str:
    """Return the text without `&&`, `||` and redirections, so that a pipe or a background job stands out."""
    return re.sub(r"&&|\|\||[0-9]?>&[0-9-]?|&>>?", " ", text)
