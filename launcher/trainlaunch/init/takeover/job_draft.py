"""A job file in the making: its fields, what is assumed in them, what of the text they don't hold, and its text.

It is planned here too, and loses what no plan takes.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from trainlaunch.diagnostics import Diagnostic, Severity, Span
from trainlaunch.errors import JobFileRejected
from trainlaunch.init.job_text import comment_lines, scalar
from trainlaunch.job.fields.table import JOB
from trainlaunch.job.reading.job_reader import read_job
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.rules import check_plan, plan_job
from trainlaunch.targets import TARGETS, Target
from trainlaunch.units import format_size
from trainlaunch.yamltree.emitter import Quoted, block_lines, comment

MAX_NAME_LENGTH = 50  # leaves room for a target's suffix

_ORDER = tuple(each.name for each in JOB.fields)


class JobDraft(NamedTuple):
    """Fields of a job file by their names, comments by field, and a warning for each part that is not in them.

    `folder` is where the text's relative paths begin, as the job file will name it; `target` writes the text's format.
    `file` is the name of the text, `here` its folder's path on this host, `kept` are fields that the caller gives.
    """

    file: str
    folder: str
    target: str
    fields: dict[str, Any]
    comments: dict[str, str]
    notes: list[Diagnostic]
    kept: set[str]
    here: str

    @property
    def record(self) -> Target:
        """What is so of the target."""
        return TARGETS[self.target]

    def set(self, field: str, value: Any, comment: str = "") -> None:
        """Set a field, with a comment for what is assumed in it. Its name is dotted: `resources.cpus`."""
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

    def leave_open(self, field: str, text: str) -> None:
        """Leave out what the text doesn't set: the plan of the job file stops there until somebody writes it."""
        self.fields.pop(field, None)
        self.comments[field] = text

    def note(self, what: str, why: str, fix: str, span: Span | None = None) -> None:
        """Say that a part of the text is not in the job file."""
        told = Diagnostic("TL381", f"{what} was not converted", fix, why=why, severity=Severity.WARNING, span=span)
        if told not in self.notes:
            self.notes.append(told)


def empty(file: str, folder: str, target: str, here: str) -> JobDraft:
    """Return a job file without fields."""
    return JobDraft(file, folder, target, {}, {}, [], set(), here)


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
    for name in sorted(
        {*draft.fields, *_OPEN & {*draft.comments}},
        key=lambda each: _ORDER.index(each) if each in _ORDER else len(_ORDER),
    ):
        if name not in draft.fields:
            yield from _comment(draft.comments[name])
            continue
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
    return comment_lines(comment(" ".join(text.split())))


_OPEN = frozenset({"image", "command"})  # what a text may leave open, and a job may not
_MAX_ROUNDS = 12
_NEEDED = frozenset({"name", "image", "command", "script", "target"})


def planned(draft: JobDraft) -> LaunchPlan:
    """Return the plan of a draft, from which fields that nothing can be planned with are taken out and noted.

    Raises JobFileRejected where what is left can't be planned either.
    """
    for _ in range(_MAX_ROUNDS):
        try:
            return plan_of(draft)
        except JobFileRejected as rejected:
            last = rejected
            left_out = [_left_out(draft, each) for each in rejected.diagnostics]  # all of them at once
            if not any(left_out):
                break
    raise JobFileRejected(each._replace(span=None) for each in last.diagnostics) from last


def plan_of(draft: JobDraft) -> LaunchPlan:
    """Return the plan of a draft, lying where its relative paths mean what they say. Raises JobFileRejected."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.yaml"
        path.write_text(text_of(_filled(draft)), encoding="utf-8")
        plan = plan_job(read_job(path, use_lock=False))
        check_plan(plan)
    return plan


def _filled(draft: JobDraft) -> JobDraft:
    """Return a draft that can be planned: with a word for what the text leaves open."""
    fields = {"image": "image:1", **draft.fields}
    if not {"command", "script"} & {*fields}:
        fields["command"] = ["command"]
    return draft._replace(fields=fields)


def _left_out(draft: JobDraft, error: Diagnostic) -> bool:
    """Take the field that an error is about out of the draft; return whether there was one to take out."""
    steps = [each for each in error.field.split(".") if each]
    if steps == ["image"] and "image" not in draft.kept:
        draft.note(f"the image {draft.fields.pop('image')}", error.message, error.fix)
        draft.leave_open("image", "The file's image is not one that an engine takes: write its name as image.")
        return True
    if not steps or steps[0] in _NEEDED:
        return False
    path = _deepest(draft.fields, steps)
    if path is None or ".".join(path) in draft.kept:
        return False
    block: Any = draft.fields
    for step in path[:-1]:
        block = block[int(step) if isinstance(block, list) else step]
    last = path[-1]
    value = block.pop(int(last) if isinstance(block, list) else last)
    shown = " ".join(f"{'.'.join(path)} {value}".split())
    draft.note(shown if len(shown) <= 120 else f"{shown[:119]}…", error.message, error.fix)
    return True


def _deepest(fields: Mapping[str, Any], steps: list[str]) -> list[str] | None:
    """Return the longest path of `steps` that the draft has, with keys that hold dots in one piece."""
    found: list[str] = []
    block: Any = fields
    while steps:
        for taken in range(len(steps), 0, -1):
            key = ".".join(steps[:taken])
            if isinstance(block, Mapping) and key in block:
                break
            if isinstance(block, list) and key.isdigit() and int(key) < len(block):
                break
        else:
            return found or None
        found.append(key)
        block = block[int(key) if isinstance(block, list) else key]
        steps = steps[taken:]
    return found or None
