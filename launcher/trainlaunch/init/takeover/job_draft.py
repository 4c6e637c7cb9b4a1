"""A job file in the making: its fields, what is assumed in them, what of the text they don't hold, and its text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from trainlaunch.diagnostics import Diagnostic, Severity, Span
from trainlaunch.init.job_text import scalar
from trainlaunch.job.fields.table import JOB, named
from trainlaunch.targets import TARGETS, Target
from trainlaunch.units import format_size
from trainlaunch.yamltree.emitter import Quoted, block_lines, comment

MAX_NAME_LENGTH = 50  # leaves room for a target's suffix

_ORDER = tuple(each.name for each in JOB.fields)


class JobDraft(NamedTuple):
    """Fields of a job file by their names, comments by field, and a warning for each part that is not in them.

    `folder` is where the text's relative paths begin, as the job file will name it; `target` writes the text's format.
    `file` is the name of the text, `kept` are fields that the caller states.
    """

    file: str
    folder: str
    target: str
    fields: dict[str, Any]
    comments: dict[str, str]
    notes: list[Diagnostic]
    kept: set[str]

    @property
    def record(self) -> Target:
        """What is so of the target."""
        return TARGETS[self.target]

    def set(self, field: str, value: Any, comment: str = "") -> None:
        """State a field, with a comment for what is assumed in it. Its name is dotted: `resources.cpus`."""
        *outer, last = field.split(".")
        block = self.fields
        for each in outer:
            block = block.setdefault(each, {})
        block[last] = value
        if comment:
            self.comment(field, comment)

    def comment(self, field: str, text: str) -> None:
        """Say something above the block that holds a field."""
        block = field.partition(".")[0]
        self.comments[block] = f"{self.comments[block]} {text}" if block in self.comments else text

    def note(self, what: str, why: str, fix: str, span: Span | None = None) -> None:
        """Say that a part of the text is not in the job file."""
        told = Diagnostic("TL381", f"{what} is not taken over", fix, why=why, severity=Severity.WARNING, span=span)
        if told not in self.notes:
            self.notes.append(told)


def empty(file: str, folder: str, target: str) -> JobDraft:
    """Return a job file without fields."""
    return JobDraft(file, folder, target, {}, {}, [], set())


def word(text: str) -> Quoted:
    """Return a value that is one plain word to every reader: a size, a number of CPUs, a name of a choice."""
    return Quoted(text)


def size(number: int) -> Quoted:
    """Return bytes as a job file has them."""
    return word(format_size(number))


def label(text: str) -> str:
    """Return a name that every target takes, made of `text`; empty where nothing of it may stand in one."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:MAX_NAME_LENGTH].strip("-")
    return f"{name}-job" if len(name) == 1 else name


def example_image() -> Quoted:
    """Return the image that stands where a text names none that can be used."""
    field = named(JOB, "image")
    return word(scalar(field.example if field else ""))


def flow(words: tuple[str, ...]) -> Quoted | list[str]:
    """Return a list on one line where it is short, else one that takes lines of its own."""
    line = f"[{', '.join(map(scalar, words))}]"
    return Quoted(line) if len(line) <= 100 and not any("\n" in each for each in words) else list(words)


def text_of(draft: JobDraft) -> str:
    """Return the job file, its fields in the order of the table of fields."""
    return "\n".join(_lines(draft)) + "\n"


def _lines(draft: JobDraft) -> Iterator[str]:
    yield from _comment(
        f"A job file of trainlaunch, made of {draft.file}. `trainlaunch plan` shows what follows from it; "
        "docs/job-file.md has every field."
    )
    for name in sorted(draft.fields, key=lambda each: _ORDER.index(each) if each in _ORDER else len(_ORDER)):
        value = draft.fields[name]
        if value in ({}, []) and name != "image_entrypoint":
            continue
        if name in draft.comments:
            yield from _comment(draft.comments[name])
        yield from block_lines({name: _plain(value)}, 0)


def _plain(value: Any) -> Any:
    """Return a value whose short strings are plain words where YAML takes them for strings."""
    if isinstance(value, Quoted):
        return value
    if isinstance(value, str):
        return value if "\n" in value else Quoted(scalar(value))
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def _comment(text: str) -> list[str]:
    shown = comment(" ".join(text.split()))
    return [f"# {line}" for line in textwrap.wrap(shown, 110, break_long_words=False, break_on_hyphens=False)]
