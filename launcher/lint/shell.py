"""Containers that commands start, in scripts, Makefiles, Markdown and wherever else a text has shell in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from launcher.diagnostics import Edit
from launcher.formats.docker.given import Source
from launcher.formats.docker.line import Line, commands, run_lines
from launcher.formats.docker.read import workload_of
from launcher.formats.docker.words import tokens
from launcher.rules.written.commands import argvs_of
from launcher.rules.written.evidence import engine_text
from launcher.rules.written.model import SHELL, Word, Written, WrittenFile

Region = tuple[int, int]
_FENCE = re.compile(r"^[ \t]*(?P<mark>`{3,}|~{3,})[ \t]*(?P<word>[\w-]*)[^\n]*\n", re.MULTILINE)
_SHELL_WORDS = frozenset({"", "sh", "bash", "shell", "console", "zsh", "shell-session", "terminal", "shellsession"})
_RECIPE = re.compile(r"^\t(?:[^\n]*\\\n)*[^\n]*\n?", re.MULTILINE)


def whole(text: str) -> tuple[Region, ...]:
    """Return the one region that a script is."""
    return ((0, len(text)),)


def fences(text: str) -> Iterator[Region]:
    """Yield the inside of each fence of Markdown that may be shell."""
    at = 0
    while opened := _FENCE.search(text, at):
        closing = re.compile(rf"^[ \t]*{opened['mark'][0]}{{{len(opened['mark'])},}}[ \t]*$", re.MULTILINE)
        closed = closing.search(text, opened.end())
        end = closed.start() if closed else len(text)
        if opened["word"].lower() in _SHELL_WORDS:
            yield opened.end(), end
        at = closed.end() if closed else len(text)


def recipes(text: str) -> Iterator[Region]:
    """Yield each recipe line of a Makefile, with the lines that continue it."""
    for match in _RECIPE.finditer(text):
        yield match.span()


def read_regions(text: str, name: str, regions: Iterable[Region], kind: str = SHELL) -> WrittenFile:
    """Return what the shell in these regions of a text starts and runs."""
    source = Source(text, name)
    containers: list[Written] = []
    found: list[tuple[Word, ...]] = []
    for start, end in regions:
        for line in run_lines(text, start, end):
            containers.append(_written(line, source, len(containers)))
        found += commands_of(text, start, end)
    return WrittenFile(kind, text, source, tuple(containers), commands=tuple(found))


def commands_of(text: str, start: int, end: int) -> Iterator[tuple[Word, ...]]:
    """Yield the words of each simple command of a region."""
    for words, _ in commands(tokens(text, start, end)):
        if words:
            yield tuple(Word(each.text, each.start, each.end, each.known) for each in words)


def _written(line: Line, source: Source, number: int) -> Written:
    workload = workload_of(line, source, number)
    place = source.span(line.run.end, line.run.end)

    def add(size: int) -> tuple[Edit, ...]:
        return (Edit(place, f" --shm-size={engine_text(size)}"),)

    podman = any("podman" in each for each in line.command)
    return Written(workload, argvs_of(workload), add_shm=add, podman=podman)
