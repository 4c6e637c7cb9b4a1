"""Several edits of one text, done at once."""

from __future__ import annotations

import pytest
from trainlaunch.diagnostics import Edit, Span
from trainlaunch.yamltree.editor import Overlapping, apply_edits


def edit(line: int, column: int, end_line: int, end_column: int, text: str) -> Edit:
    """Return an edit of a file that needs no name."""
    return Edit(Span("f", line, column, end_line, end_column), text)


def test_edits_are_done_in_the_places_of_the_text_as_it_was() -> None:
    """In any order; those at one place in the order given, and lines may end in either way."""
    text = "one\r\ntwo\nthree"
    edits = [edit(3, 6, 3, 6, "!"), edit(1, 2, 2, 1, "N "), edit(3, 6, 3, 6, "?"), edit(2, 1, 2, 2, "T")]
    assert apply_edits(text, edits) == "oN Two\nthree!?"
    assert apply_edits(text, []) == text


@pytest.mark.parametrize("other", [edit(1, 2, 1, 3, "x"), edit(1, 1, 1, 4, "x"), edit(1, 2, 1, 2, "x")])
def test_edits_that_overlap_are_refused(other: Edit) -> None:
    """One of them would be lost."""
    with pytest.raises(Overlapping):
        apply_edits("one", [edit(1, 1, 1, 3, "y"), other])
