"""The text of a job file that was made of another text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from trainlaunch.init.takeover.draft import Draft
from trainlaunch.init.text import scalar
from trainlaunch.job.fields.table import JOB
from trainlaunch.yamltree.emitter import Quoted, block_lines, comment

_ORDER = tuple(each.name for each in JOB.fields)


def text_of(draft: Draft) -> str:
    """Return the job file, its fields in the order of the table of fields."""
    return "\n".join(_lines(draft)) + "\n"


def _lines(draft: Draft) -> Iterator[str]:
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
