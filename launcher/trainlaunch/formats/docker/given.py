"""Values of a line's flags with their places in the text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TypeVar

from trainlaunch.diagnostics import Span
from trainlaunch.formats.docker.line import Given
from trainlaunch.formats.docker.words import Word
from trainlaunch.formats.workload import Known, Unknown

T = TypeVar("T")


class Source:
    """A text with the places of its lines."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self._starts = [0]
        for line in text.split("\n")[:-1]:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def span(self, start: int, end: int) -> Span:
        """Return the place of the characters from `start` to `end`."""
        first, last = bisect_right(self._starts, start), bisect_right(self._starts, end)
        return Span(self.file, first, start - self._starts[first - 1] + 1, last, end - self._starts[last - 1] + 1)

    def value(self, value: T, start: int, end: int) -> Known[T]:
        """Return a value that stands there."""
        return Known(value, self.text[start:end], self.span(start, end))

    def unknown(self, start: int, end: int) -> Unknown:
        """Return what is decided elsewhere than there."""
        return Unknown(self.text[start:end], self.span(start, end))

    def word(self, word: Word) -> Known[str] | Unknown:
        """Return a whole word."""
        if not word.known:
            return self.unknown(word.start, word.end)
        return self.value(word.text, word.start, word.end)

    def words(self, words: tuple[Word, ...]) -> Known[tuple[str, ...]] | Unknown:
        """Return several words as one value."""
        start, end = words[0].start, words[-1].end
        if all(each.known for each in words):
            return self.value(tuple(each.text for each in words), start, end)
        return self.unknown(start, end)

    def given(
        self, given: Given, parse: Callable[[str], T | None], first: int = 0, last: int | None = None
    ) -> Known[T] | Unknown:
        """Return what `parse` makes of a flag's value, or of its characters `first` to `last`.

        What `parse` makes None of is unknown, as what only a shell can work out.
        """
        text = given.value or ""
        last = len(text) if last is None else last
        start, end, known = given.word.part(given.first + first, given.first + last)
        read = parse(text[first:last]) if known else None
        return self.unknown(start, end) if read is None else self.value(read, start, end)

    def is_known(self, given: Given, first: int = 0, last: int | None = None) -> bool:
        """Return whether the text itself decides a flag's value, or its characters `first` to `last`."""
        last = len(given.value or "") if last is None else last
        return given.word.part(given.first + first, given.first + last)[2]
