"""Edits of a text, done at once, and edits of YAML that somebody wrote: one value changes, no other byte does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from trainlaunch.diagnostics import Edit
from trainlaunch.yamltree.changes import Change, EditRefused, shape, shape_after, shown
from trainlaunch.yamltree.draft import EditDraft
from trainlaunch.yamltree.emitter import Style
from trainlaunch.yamltree.layout import column, is_block
from trainlaunch.yamltree.tolerant import Documents, Mapping, Node, Sequence, documents

_INDENTS = range(1, 9)


class Editor:
    """A text of one or several documents, read once; `after` a change it is another one.

    Raises EditRefused where the text can't be read.
    """

    def __init__(self, text: str, file: str = "") -> None:
        self.text = text
        self._file = file
        self._read: Documents = documents(text, file)
        if self._read.broken:
            raise EditRefused(f"the text can't be read: {self._read.broken.message}")

    def edits(self, change: Change, document: int = 0) -> tuple[Edit, ...]:
        """Return the edits that make a change of a document, and nothing else. Raises EditRefused where none do."""
        return self._made(change, document)[0]

    def after(self, change: Change, document: int = 0) -> Editor:
        """Return the text with a change of a document. Raises EditRefused where no edit makes it and it alone."""
        return self._made(change, document)[1]

    def expanded(self, document: int = 0) -> Editor:
        """Return the text with each alias and merge of a document written out, so that changes reach one place alone.

        Raises EditRefused where one can't be, as with a tag.
        """
        editor = self
        while edit := EditDraft(editor.text, editor._read.nodes[document], editor._style()).first_expansion():
            editor = editor._proved((edit,), editor._shapes, "an alias")
        return editor

    def _made(self, change: Change, document: int) -> tuple[tuple[Edit, ...], Editor]:
        nodes = self._read.nodes
        if document >= len(nodes):
            raise EditRefused(f"there is no document {document}")
        wanted = list(self._shapes)
        wanted[document] = shape_after(nodes[document], change)
        edits = tuple(EditDraft(self.text, nodes[document], self._style()).edits(change))
        return edits, self._proved(edits, wanted, shown(change.path))

    def _proved(self, edits: tuple[Edit, ...], wanted: list[Any], what: str) -> Editor:
        made = Editor(apply_edits(self.text, edits), self._file)
        if made._shapes != wanted:
            raise EditRefused(f"no edit changes {what} alone: an alias or the layout joins it with more")
        return made

    @cached_property
    def _shapes(self) -> list[Any]:
        return [shape(each) for each in self._read.nodes]

    def _style(self) -> Style:
        """Return how the text indents below a key: its first mapping there, and its first list."""
        steps: list[int] = []
        dashes: list[int] = []
        for outer, value in (each for root in self._read.nodes for each in _below_keys(root)):
            by = column(self.text, value.start) - column(self.text, outer.start)
            if isinstance(value, Sequence) and by in (0, *_INDENTS):
                dashes.append(by)
            elif isinstance(value, Mapping) and by in _INDENTS:
                steps.append(by)
        step = steps[0] if steps else 2
        return Style(step, dashes[0] if dashes else step)


def _below_keys(node: Node) -> Iterator[tuple[Node, Node]]:
    """Yield each mapping with each list and mapping that takes lines below one of its keys."""
    if not is_block(node):
        return
    for value in [value for _, value in node.pairs] if isinstance(node, Mapping) else node.items:
        if value.start > node.start:  # else an alias
            if isinstance(node, Mapping) and is_block(value):
                yield node, value
            yield from _below_keys(value)


class Overlapping(Exception):
    """Two edits change the same place, so that one of them would be lost; the edits are its arguments."""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
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
