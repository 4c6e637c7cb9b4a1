"""Edits of a text, done at once."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trainlaunch.diagnostics import Edit


class Overlapping(Exception):
    """Two edits change the same place, so that one of them would be lost; the edits are its arguments."""


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Return `text` with all edits done, each span being a place of `text` as it was.

    Edits at one empty span are all done, in the order given. Raises Overlapping, and then nothing is done.
    """
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    placed = [
        (starts[span.line - 1] + span.column - 1, starts[span.end_line - 1] + span.end_column - 1, edit)
        for edit in edits
        for span in (edit.span,)
    ]
    done, at, last = [], 0, None
    for start, end, edit in sorted(placed, key=lambda each: each[:2]):
        if start < at and last is not None:
            raise Overlapping(last, edit)
        done += [text[at:start], edit.text]
        at, last = end, edit
    return "".join((*done, text[at:]))
