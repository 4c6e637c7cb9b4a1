"""Edits as data: made of changes of YAML, and applied to a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from launcher.diagnostics import Edit
from launcher.rules.written.model import Finding
from launcher.yamltree.changes import Change, EditRefused
from launcher.yamltree.editor import Editor


def yaml_edits(text: str, name: str, changes: Sequence[Change], document: int) -> tuple[Edit, ...]:
    """Return the edits that make these changes of a document; none where one would reach further than its place."""
    try:
        editor = Editor(text, name)
        return tuple(edit for change in changes for edit in editor.edits(change, document))
    except EditRefused:
        return ()


def chosen(findings: Iterable[Finding]) -> tuple[Edit, ...]:
    """Return the edits of all safe fixes; of two that touch the same place only the first finding's."""
    taken: list[Edit] = []
    for finding in findings:
        if finding.safe and not any(_touch(one, other) for one in finding.edits for other in taken):
            taken += finding.edits
    return tuple(taken)


def _touch(one: Edit, other: Edit) -> bool:
    first, second = sorted((_range(one), _range(other)))
    return first[1] > second[0] or first[0] == second[0]


def _range(edit: Edit) -> tuple[tuple[int, int], tuple[int, int]]:
    span = edit.span
    return (span.line, span.column), (span.end_line, span.end_column)
