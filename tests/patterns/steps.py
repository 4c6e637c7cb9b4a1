"""Counts the steps of a regular expression: what `re` does, one try at a time, from its own parse of the pattern.

A step is a character or a place that is looked at. `re` takes them in the same order, and some of them faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

try:
    from re import _compiler, _constants, _parser
except ImportError:  # Python 3.10
    import sre_compile as _compiler
    import sre_constants as _constants
    import sre_parse as _parser

Text = Any  # str or bytes, as the pattern's
Node = Callable[[int], Iterator[int]]  # yields where it ends, best first
CHARACTERS = (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN)
MAXREPEAT = _constants.MAXREPEAT
COUNT = 40  # a stated bound that is higher is lowered to it: what a bound multiplies does not grow with the text


def parse(pattern: re.Pattern[Any]) -> Any:
    """Return the nodes of a pattern, as `re` reads it."""
    return _parser.parse(pattern.pattern, pattern.flags)


def accepts(node: tuple[Any, Any], character: str, flags: int) -> bool:
    """Return whether a node for one character is one for this."""
    return _single(*node, flags).match(character) is not None


def _single(op: Any, value: Any, flags: int) -> re.Pattern[Any]:
    return _compiled(op, tuple(value) if isinstance(value, list) else value, flags)


@cache
def _compiled(op: Any, value: Any, flags: int) -> re.Pattern[Any]:
    part = _parser.SubPattern(_parser.State(), [(op, value)])
    part.state.flags = flags
    return _compiler.compile(part, flags)


class TooMany(Exception):
    """More steps than any linear pattern takes."""


class Match(NamedTuple):
    """Where a match lies, as `re.Match.span`."""

    start: int
    end: int


class Counter:
    """A pattern that counts the steps of its matches; `bounded` lowers high bounds, after which spans may differ."""

    def __init__(self, pattern: re.Pattern[Any], *, bounded: bool = True) -> None:
        self._bounded = bounded
        parsed = parse(pattern)
        self._groups: dict[int, tuple[int, int]] = {}
        self._text: Text = ""
        self.steps = 0
        self._most = 0
        self._whole = self._sequence(parsed, parsed.state.flags)

    def match(self, text: Text, at: int = 0, *, whole: bool = False, empty: bool = True) -> Match | None:
        """Match at a place as `match` does, or `fullmatch` where `whole`; no empty text unless `empty`."""
        self._text, self._groups = text, {}
        for end in self._whole(at):
            if (not whole or end == len(text)) and (empty or end > at):
                return Match(at, end)
        return None

    def search(self, text: Text, at: int = 0, *, empty: bool = True) -> Match | None:
        """Match at the first place that can be; none at `at` itself that is empty, unless `empty`."""
        for start in range(at, len(text) + 1):
            self._step()
            if found := self.match(text, start, empty=empty or start > at):
                return found
        return None

    def scan(self, text: Text) -> list[Match]:
        """Return the matches that `finditer` finds, which `sub`, `split` and `findall` take."""
        found: list[Match] = []
        last = Match(-1, 0)
        while match := self.search(text, last.end, empty=last.start < last.end):
            found.append(last := match)
        return found

    def count(self, how: str, text: Text) -> int:
        """Return the steps of one use of a text. Raises TooMany far above what is linear."""
        self.steps, self._most = 0, 1000 * (len(text) + 100)
        if how in {"match", "fullmatch"}:
            self.match(text, whole=how == "fullmatch")
        elif how == "search":
            self.search(text)
        else:
            self.scan(text)
        return self.steps

    def _step(self) -> None:
        self.steps += 1
        if self._most and self.steps > self._most:
            raise TooMany

    def _sequence(self, items: Any, flags: int) -> Node:
        nodes = [self._node(op, value, flags) for op, value in items]
        if len(nodes) == 1:
            return nodes[0]

        def run(at: int) -> Iterator[int]:
            ends = [iter((at,))]
            while ends:
                end = next(ends[-1], None)
                if end is None:
                    ends.pop()
                elif len(ends) > len(nodes):
                    yield end
                else:
                    ends.append(nodes[len(ends) - 1](end))

        return run

    def _node(self, op: Any, value: Any, flags: int) -> Node:
        if op in CHARACTERS:
            return self._character(op, value, flags)
        return getattr(self, f"_{str(op).lower()}")(value, flags)

    def _character(self, op: Any, value: Any, flags: int) -> Node:
        known: dict[Text, bool] = {}
        ask = _single(op, value, flags).match

        def run(at: int) -> Iterator[int]:
            self._step()
            here = self._text[at : at + 1]
            if here and here not in known:
                known[here] = ask(here) is not None
            if here and known[here]:
                yield at + 1

        return run

    def _at(self, value: Any, flags: int) -> Node:
        ask = _single(_constants.AT, value, flags).match

        def run(at: int) -> Iterator[int]:
            self._step()
            if ask(self._text, at):
                yield at

        return run

    def _branch(self, value: Any, flags: int) -> Node:
        arms = [self._sequence(each, flags) for each in value[1]]

        def run(at: int) -> Iterator[int]:
            for arm in arms:
                yield from arm(at)

        return run

    def _subpattern(self, value: Any, flags: int) -> Node:
        group, added, removed, items = value
        inside = self._sequence(items, (flags | added) & ~removed)
        if group is None:
            return inside

        def run(at: int) -> Iterator[int]:
            for end in inside(at):
                before = self._groups.get(group)
                self._groups[group] = (at, end)
                yield end
                if before is None:
                    del self._groups[group]
                else:
                    self._groups[group] = before

        return run

    def _atomic_group(self, value: Any, flags: int) -> Node:
        return _first(self._sequence(value, flags))

    def _possessive_repeat(self, value: Any, flags: int) -> Node:
        return _first(self._repeat(value, flags, greedy=True))

    def _max_repeat(self, value: Any, flags: int) -> Node:
        return self._repeat(value, flags, greedy=True)

    def _min_repeat(self, value: Any, flags: int) -> Node:
        return self._repeat(value, flags, greedy=False)

    def _repeat(self, value: Any, flags: int, *, greedy: bool) -> Node:
        least, most, items = value
        if self._bounded and most is not MAXREPEAT:
            least, most = min(least, COUNT), min(most, COUNT)
        inside = self._sequence(items, flags)

        def run(at: int) -> Iterator[int]:
            ends, starts = [iter((at,))], [-1]  # of no, one, two … times
            while ends:
                times, end = len(ends) - 1, next(ends[-1], None)
                if end is None:
                    ends.pop()
                    start = starts.pop()
                    if greedy and times > least:
                        yield start
                    continue
                goes_on = times < most and (end != starts[-1] or times < least)
                if times >= least and not (greedy and goes_on):
                    yield end
                if goes_on:
                    ends.append(inside(end))
                    starts.append(end)

        return run

    def _assert(self, value: Any, flags: int) -> Node:
        return self._look(value, flags, wanted=True)

    def _assert_not(self, value: Any, flags: int) -> Node:
        return self._look(value, flags, wanted=False)

    def _look(self, value: Any, flags: int, *, wanted: bool) -> Node:
        direction, items = value
        back = items.getwidth()[0] if direction < 0 else 0
        inside = self._sequence(items, flags)

        def run(at: int) -> Iterator[int]:
            self._step()
            before = dict(self._groups)
            found = at >= back and next(inside(at - back), None) is not None
            if not (found and wanted):
                self._groups = before
            if found == wanted:
                yield at
                self._groups = before

        return run

    def _groupref(self, value: Any, flags: int) -> Node:
        def run(at: int) -> Iterator[int]:
            span = self._groups.get(value)
            if span is None:
                return
            said, here = self._text[slice(*span)], self._text[at : at + span[1] - span[0]]
            for _ in said or " ":
                self._step()
            if said == here or (flags & re.IGNORECASE and said.lower() == here.lower()):
                yield at + len(said)

        return run


def _first(node: Node) -> Node:
    def run(at: int) -> Iterator[int]:
        yield from (end for end in [next(node(at), None)] if end is not None)

    return run
