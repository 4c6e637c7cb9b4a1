"""Edits as data: made of changes of YAML, and applied to a text."""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from functools import lru_cache

from trainlaunch.diagnostics import Edit
from trainlaunch.rules.sources.source_text import TextFinding
from trainlaunch.yamltree.changes import Change, EditRefused
from trainlaunch.yamltree.editor import Editor, apply_edits

Place = tuple[int, int]
# An edit is proved by reading the whole text again. So many characters are read for one text, and no hang follows.
_MAX_READ = 800_000


class Budget:
    """How many more edits of a text are worked out."""

    def __init__(self, text: str) -> None:
        self._left = max(2, _MAX_READ // max(len(text), 1))

    def spend(self) -> bool:
        """Take one; False where none is left."""
        self._left -= 1
        return self._left >= 0


@lru_cache(maxsize=1)
def _editor(text: str, name: str) -> Editor:
    return Editor(text, name)


def yaml_edits(text: str, name: str, changes: Sequence[Change], document: int) -> tuple[Edit, ...]:
    """Return the edits that make these changes of a document; none where one would reach further than its place."""
    try:
        editor = _editor(text, name)
        edits = tuple(edit for change in changes for edit in editor.edits(change, document))
    except EditRefused:
        return ()
    return edits if not is_json(text) or is_json(apply_edits(text, edits)) else ()


def is_json(text: str) -> bool:
    """Return whether a text is JSON, and not only YAML that looks like it."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def chosen(findings: Iterable[TextFinding]) -> tuple[Edit, ...]:
    """Return the edits of all safe fixes; of two that touch the same place only the first finding's."""
    taken: list[tuple[Place, Place]] = []
    edits: list[Edit] = []
    for finding in findings:
        if finding.safe and not any(_touches(_range(each), taken) for each in finding.edits):
            edits += finding.edits
            for each in finding.edits:
                insort(taken, _range(each))
    return tuple(edits)


def _touches(one: tuple[Place, Place], taken: Sequence[tuple[Place, Place]]) -> bool:
    """Return whether a range starts where one of `taken` does, or overlaps it; those are in order, each apart."""
    at = bisect_left(taken, one)
    before, behind = taken[max(at - 1, 0) : at], taken[at : at + 1]
    return any(each[1] > one[0] or each[0] == one[0] for each in before) or any(
        one[1] > each[0] or each[0] == one[0] for each in behind
    )


def _range(edit: Edit) -> tuple[Place, Place]:
    span = edit.span
    return (span.line, span.column), (span.end_line, span.end_column)
