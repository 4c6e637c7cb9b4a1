"""Finds any of some words in megabytes, at the speed of memory."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

RARE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZx"  # letters of which a log has few: one of them is looked for, then what follows


class Words:
    """The words; those with one rare first letter are found together."""

    def __init__(self, words: Iterable[bytes]) -> None:
        grouped: dict[bytes, list[bytes]] = {}
        for word in words:
            grouped.setdefault(word[:1] if word[:1] in RARE else word, []).append(word)
        self._finders = [_finder(initial, each) for initial, each in grouped.items()]

    def places(self, text: bytes) -> Iterator[int]:
        """Yield where words are, once a line for each finder."""
        for find in self._finders:
            at = find(text, 0)
            while at >= 0:
                yield at
                at = find(text, text.find(b"\n", at))

    def lines_with(self, lines: Sequence[bytes]) -> set[int]:
        """Return the indices of the lines that have a word."""
        text = b"\n".join(lines) + b"\n"
        starts = [0, *accumulate(len(each) + 1 for each in lines)]
        return {bisect_right(starts, place) - 1 for place in self.places(text)}


def _finder(initial: bytes, words: list[bytes]) -> Callable[[bytes, int], int]:
    """Return what finds the next place of any of these words, which is -1 without one."""
    if initial in words:
        return lambda text, at: text.find(initial, at)
    search = re.compile(b"|".join(map(re.escape, words))).search

    def place(text: bytes, at: int) -> int:
        found = search(text, at)
        return found.start() if found else -1

    return place
