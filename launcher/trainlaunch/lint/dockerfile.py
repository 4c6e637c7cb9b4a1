"""The instructions of a Dockerfile with their places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from trainlaunch.formats.docker import shell_lexer as shell
from trainlaunch.formats.docker.placed_values import PlacedText
from trainlaunch.rules.sources.source_text import DOCKERFILE, Instruction, SourceText, SourceWord

_START = re.compile(r"^[ \t]*(?:ONBUILD[ \t]+)?([A-Za-z]+)(?=[ \t]|\\\r?\n)[ \t]*", re.MULTILINE)
_COMMENT = re.compile(r"[ \t]*(?:#[^\n]*)?\r?\n?")
_DOCUMENT = re.compile(r"<<-?[ \t]*([\"']?)([A-Za-z_]\w*)\1")
_WITH_WORDS = frozenset({"CMD", "ENTRYPOINT"})


def read_dockerfile(text: str, name: str) -> SourceText:
    """Return the instructions of a Dockerfile; a line that is none is left out."""
    return SourceText(DOCKERFILE, text, PlacedText(text, name), instructions=tuple(_instructions(text)))


def _instructions(text: str) -> Iterator[Instruction]:
    at = 0
    while at < len(text):
        end = _line_end(text, at)
        line = text[at:end]
        if _COMMENT.fullmatch(line + "\n" if not line.endswith("\n") else line):
            at = end + 1
            continue
        stop = _statement_end(text, at)
        match = _START.match(text, at, stop)
        if match:
            begin = match.end()
            value = text[begin:stop]
            at_word = match.start(1)
            yield _instruction(text, match[1].upper(), at_word, begin, stop, value)
            stop = _behind_documents(text, value, stop)
        at = stop + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _statement_end(text: str, at: int) -> int:
    """Return where an instruction ends whose lines are joined by a backslash; comments in between belong to it."""
    end = _line_end(text, at)
    while end < len(text) and text[at:end].rstrip().endswith("\\"):
        at = end + 1
        end = _line_end(text, at)
        while end < len(text) and _COMMENT.fullmatch(text[at:end] + "\n") and text[at:end].strip():
            at = end + 1
            end = _line_end(text, at)
    return end


def _behind_documents(text: str, value: str, stop: int) -> int:
    for match in _DOCUMENT.finditer(value):
        closing = re.compile(rf"^\t*{match[2]}\r?$", re.MULTILINE).search(text, stop)
        stop = closing.end() if closing else len(text)
    return stop


def _instruction(text: str, name: str, start: int, begin: int, stop: int, value: str) -> Instruction:
    clean = re.sub(r"\\\r?\n", "  ", value)
    end = begin + len(value.rstrip())
    if name not in _WITH_WORDS:
        return Instruction(name, clean, start, end)
    argv = words_of_json(clean)
    if argv is not None:
        words = tuple(SourceWord(each, begin, stop, True) for each in argv)
        return Instruction(name, clean, start, end, words, exec_form=True)
    found = (each for each in shell.tokens(text, begin, stop) if isinstance(each, shell.Word))
    return Instruction(
        name, clean, start, end, tuple(SourceWord(each.text, each.start, each.end, each.known) for each in found)
    )


def words_of_json(text: str) -> list[str] | None:
    """Return the words of an instruction in its JSON form; None of one that is no list of texts."""
    try:
        words = json.loads(text) if text.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        return None
    return words if isinstance(words, list) and all(isinstance(each, str) for each in words) else None
