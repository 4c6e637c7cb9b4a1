"""Texts that make a pattern take long, if any can: repeated characters and words of its own, with what lets it fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from tests.patterns.steps import CHARACTERS, MAXREPEAT, accepts, parse

# Newlines, blanks, quotes, brackets, digits first; where several mean the same to a pattern, the first stands for all.
_ALPHABET = dict.fromkeys("\n \t\"'([{<0a1x/\\-._:=$#,;|&@A~" + "".join(map(chr, range(33, 127))) + "\r\x1b\xe9")
_ENDS = ("", "\n", "\0")


class Pumped(NamedTuple):
    """A text of any length: what stands first, what is repeated, what stands last."""

    first: str
    unit: str
    last: str

    def text(self, times: int) -> str:
        """Return it with so many units."""
        return self.first + self.unit * times + self.last


def pumped(pattern: re.Pattern[Any]) -> Iterator[Pumped]:
    """Yield the texts for a pattern; none for one that looks at a bounded number of characters from each place."""
    parts = _Parts(pattern)
    before = [_sample(items, parts) for items, _ in parts.repeats]
    inside = [_sample(items, parts) for _, items in parts.repeats]
    words = {"", *before, *inside, *map("".join, zip(before, inside, strict=True))}
    fillers = {"", *parts.characters, *inside}
    texts = {("", each) for each in (*map("".join, product(words, fillers)), *parts.literals)}
    texts |= set(product(before, fillers))
    for (first, unit), last in product(sorted(texts), _ENDS):
        if unit and parts.repeats:
            yield Pumped(first, unit, last)


class _Parts:
    """What a pattern consists of: its unbounded repeats with what stands before each, its words and characters."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        parsed = parse(pattern)
        self.repeats: list[tuple[list[Any], list[Any]]] = []
        self.literals: set[str] = set()
        self.classes: list[Any] = []
        self.flags = parsed.state.flags
        self._walk(list(parsed), [], repeated=False)
        told: dict[tuple[bool, ...], str] = {}
        for each in _ALPHABET if self.repeats else ():
            told.setdefault((each.isalnum(), *(self.accepts(node, each) for node in self.classes)), each)
        self.characters = list(told.values())

    def accepts(self, node: Any, character: str) -> bool:
        return accepts(node, character, self.flags)

    def _walk(self, items: list[Any], before: list[Any], *, repeated: bool) -> None:
        word = ""
        for index, (op, value) in enumerate([*items, (None, None)]):
            if str(op) == "LITERAL":
                word += chr(value)
            elif word:
                self.literals.add(word)
                word = ""
            if op in CHARACTERS and (repeated or str(op) != "LITERAL"):
                self.classes.append((op, value))
            unbounded = str(op) in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"} and value[1] is MAXREPEAT
            if unbounded:
                self.repeats.append(([*before, *items[:index]], list(value[2])))
            for part in _inside(op, value):
                self._walk(part, [*before, *items[:index]], repeated=repeated or unbounded)


def _inside(op: Any, value: Any) -> Iterator[list[Any]]:
    """Yield the sequences that a node holds."""
    if str(op) == "BRANCH":
        yield from map(list, value[1])
    elif str(op) in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT", "SUBPATTERN", "ASSERT", "ASSERT_NOT"}:
        yield list(value[-1])
    elif str(op) == "ATOMIC_GROUP":
        yield list(value)


def _sample(items: list[Any], parts: _Parts) -> str:
    """Return a short text that these nodes match, as far as one character after the other tells."""
    said = ""
    for op, value in items:
        if op in CHARACTERS:
            said += next((each for each in "a \n0" if parts.accepts((op, value), each)), "") or next(
                (each for each in _ALPHABET if parts.accepts((op, value), each)), ""
            )
        elif str(op).endswith("_REPEAT"):
            said += _sample(list(value[2]), parts) * min(value[0], 3)
        elif not str(op).startswith("ASSERT"):
            said += next((_sample(each, parts) for each in _inside(op, value)), "")
    return said
