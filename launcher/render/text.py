"""What compiled templates take from Jinja2's own filters, with the same results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice


def indented(text: str, width: int, *, first: bool = False) -> str:
    """Return `text` with each line that is not empty moved right by `width` columns; the first if asked."""
    blank = " " * width
    head, *lines = text.split("\n")
    return "\n".join((blank + head if first else head, *(blank + line if line else line for line in lines)))


def batches(items: Iterable[object], size: int, fill: object) -> Iterator[list[object]]:
    """Yield the items in lists of `size`, the last one filled up with `fill`."""
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch + [fill] * (size - len(batch))
