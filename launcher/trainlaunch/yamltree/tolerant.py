"""YAML documents that somebody wrote, as nodes with exact places: tolerant where `source` is strict.

Tags, duplicate keys, keys that are no words, several documents and merge keys are all kept, for whoever reads a format
to judge. Aliases share nodes; their written-out size is bounded, so that readers may walk them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import yaml

from trainlaunch.diagnostics import Span

_CORE = "tag:yaml.org,2002:"
MAX_VALUES = 100_000
MAX_DEPTH = 64
_PROPERTIES = r"(?:(?:&[\w-]+|!(?:<[^>\s]*>?|[^\s,\[\]{}]*))(?:\s|(?<=\s)#[^\n]*)*){1,2}"
# What YAML's characters are not: said the other way round, it takes 3 ms to compile.
_NOT_YAML = "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]"
_PLAIN = frozenset({None, ""})  # a plain scalar's style is None from PyYAML's own parser and '' from libyaml


class Source:
    """A text and its file's name; knows the line and column of an index, lines ending at \\n alone."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def span(self, start: int, end: int) -> Span:
        """Return the place of `text[start:end]`."""
        first, last = bisect_right(self._lines, start), bisect_right(self._lines, end)
        columns = start - self._lines[first - 1] + 1, end - self._lines[last - 1] + 1
        return Span(self.file, first, columns[0], last, columns[1])


class _Placed:
    __slots__ = ("end", "source", "start", "tag")

    def __init__(self, source: Source, start: int, end: int, tag: str | None) -> None:
        self.source = source
        self.start = start
        self.end = end
        self.tag = tag

    @property
    def raw(self) -> str:
        """The source spelling, quotes included."""
        return self.source.text[self.start : self.end]

    @property
    def span(self) -> Span:
        """The place of `raw`; anchors and tags stand before it. What comes by an alias has the place of its anchor."""
        return self.source.span(self.start, self.end)


class Scalar(_Placed):
    """One scalar: `text` is its value without quotes, escapes and folds; an empty one has an empty `raw`."""

    __slots__ = ("plain", "text")

    def __init__(self, source: Source, start: int, end: int, tag: str | None, text: str, plain: bool) -> None:
        self.source, self.start, self.end, self.tag = source, start, end, tag
        self.text = text
        self.plain = plain


class Sequence(_Placed):
    """A list in source order."""

    __slots__ = ("items",)

    def __init__(self, source: Source, start: int, end: int, tag: str | None, items: tuple[Node, ...]) -> None:
        super().__init__(source, start, end, tag)
        self.items = items


class Mapping(_Placed):
    """A mapping: `pairs` as written, `keys` and `items` by the text of their key with `<<` carried out.

    Of a key that stands twice the last value counts, and `repeated` has its later keys; what stands in a mapping wins
    over what it merges, and the first of several merged ones over the next. Keys that are no scalars are in `pairs`
    alone.
    """

    __slots__ = ("items", "keys", "pairs", "repeated")

    def __init__(
        self, source: Source, start: int, end: int, tag: str | None, pairs: tuple[tuple[Node, Node], ...]
    ) -> None:
        super().__init__(source, start, end, tag)
        self.pairs = pairs
        self.keys: dict[str, Scalar] = {}
        self.items: dict[str, Node] = {}
        self.repeated: list[Scalar] = []
        merges: list[Node] = []
        for key, value in pairs:
            if not isinstance(key, Scalar):
                continue
            if key.plain and key.text == "<<":
                if merges:
                    self.repeated.append(key)
                merges.append(value)
                continue
            if key.text in self.keys:
                self.repeated.append(key)
            self.keys[key.text] = key
            self.items[key.text] = value
        for merged in merges:
            for each in merged.items if isinstance(merged, Sequence) else (merged,):
                if isinstance(each, Mapping):
                    self.keys = {**each.keys, **self.keys}
                    self.items = {**each.items, **self.items}


Node: TypeAlias = Scalar | Sequence | Mapping


class Broken(NamedTuple):
    """What is wrong at a place: why a text can't be read on there, or what readers may take differently."""

    message: str
    span: Span


class Documents(NamedTuple):
    """The documents of a text up to its end, or to where it is `broken`; an empty document is an empty Scalar.

    `odd` is what YAML allows and no value shows: keys that stand twice, keys that are no words, tags of one's own.
    """

    nodes: tuple[Node, ...]
    broken: Broken | None = None
    odd: tuple[Broken, ...] = ()


def documents(text: str, file: str) -> Documents:
    """Return the documents of `text`, whatever it is; nothing is raised."""
    source = Source(text, file)
    builder = _Builder(source)
    found: list[Node] = []
    try:
        for node in builder.documents():
            found.append(node)
    except _BrokenError as error:
        return Documents(tuple(found), error.broken, tuple(builder.odd))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = min(builder.shift + (mark.index if mark else 0), len(text))
        return Documents(tuple(found), Broken(error.problem or "unreadable", source.span(at, at)), tuple(builder.odd))
    except (yaml.YAMLError, UnicodeError):
        bad = re.compile(_NOT_YAML).search(text, builder.shift)
        at = bad.start() if bad else 0
        broken = Broken("a character that YAML does not allow", source.span(at, at + bool(bad)))
        return Documents(tuple(found), broken, tuple(builder.odd))
    return Documents(tuple(found), None, tuple(builder.odd))


def _after_properties(text: str, start: int) -> int:
    """Return where a value starts whose anchor and tag start at `start`."""
    match = re.compile(_PROPERTIES).match(text, start)
    return match.end() if match else start


def _end_of_block(text: str, start: int, end: int) -> int:
    """Return where the last line of a block scalar ends, its line break left out."""
    last = start + len(text[start:end].rstrip("\r\n \t"))
    return last + len(text[last:end].split("\n", 1)[0].rstrip("\r"))


def _levels(node: Node) -> int:
    """Return how many levels a node has below it."""
    if isinstance(node, Scalar):
        return 0
    below = node.items if isinstance(node, Sequence) else (each for pair in node.pairs for each in pair)
    return 1 + max(map(_levels, below), default=0)


class _BrokenError(Exception):
    def __init__(self, broken: Broken) -> None:
        self.broken = broken
        super().__init__(broken.message)


class _Builder:
    """Builds nodes from parser events, counting what the aliases stand for."""

    def __init__(self, source: Source) -> None:
        # The parsers take a byte order mark off, libyaml without counting it.
        self.shift = int(source.text.startswith("\ufeff"))
        self.odd: list[Broken] = []
        self._source = source
        self._anchors: dict[str, tuple[Node, int, int]] = {}  # what it names, how many values and levels
        self._values = 0
        self._last_end = 0  # of what was read last, in source order

    def documents(self) -> Iterator[Node]:
        """Yield the root of each document; raises what the parser raises."""
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._next = loader(self._source.text[self.shift :]).get_event
        self._next()  # start of stream
        while not isinstance(self._next(), yaml.StreamEndEvent):
            self._anchors.clear()
            yield self._node(self._next(), 0)
            self._next()  # end of document

    def _node(self, event: Any, depth: int) -> Node:
        kind = type(event)
        if kind is yaml.AliasEvent:
            return self._alias(event, depth)
        self._values += 1
        if self._values > MAX_VALUES or depth > MAX_DEPTH:
            raise self._too_large(event, depth)
        if kind is yaml.ScalarEvent and event.anchor is None and event.tag is None:
            return self._scalar(event)  # as most are
        values = self._values
        node: Node
        if kind is yaml.ScalarEvent:
            node = self._scalar(event)
        else:
            node = (self._sequence if kind is yaml.SequenceStartEvent else self._mapping)(event, depth)
        if event.tag is not None and not event.tag.startswith(_CORE):
            self._note(node, f"the tag {event.tag}")
        if event.anchor:
            self._anchors[event.anchor] = (node, self._values - values + 1, _levels(node))
        return node

    def _scalar(self, event: Any) -> Scalar:
        start, end = event.start_mark.index + self.shift, event.end_mark.index + self.shift
        style, value = event.style, event.value
        plain = not style  # None from PyYAML's own parser, and '' from libyaml
        if plain and not value:
            start = end  # an empty value: the mark may stand before the blanks or the tag
        elif event.anchor or event.tag:
            start = _after_properties(self._source.text, start)
        if style in ("|", ">"):
            end = _end_of_block(self._source.text, start, end)
        self._last_end = end
        return Scalar(self._source, start, end, event.tag, value, plain)

    def _sequence(self, event: Any, depth: int) -> Sequence:
        items: list[Node] = []
        while not isinstance(end := self._next(), yaml.SequenceEndEvent):
            items.append(self._node(end, depth + 1))
        return Sequence(*self._place(event, end, empty=not items), event.tag, tuple(items))

    def _mapping(self, event: Any, depth: int) -> Mapping:
        pairs: list[tuple[Node, Node]] = []
        while not isinstance(end := self._next(), yaml.MappingEndEvent):
            key = self._node(end, depth + 1)
            pairs.append((key, self._node(self._next(), depth + 1)))
        made = Mapping(*self._place(event, end, empty=not pairs), event.tag, tuple(pairs))
        for key in made.repeated:
            self._note(key, f"the key {key.text} twice")
        for other in (key for key, _ in pairs if not isinstance(key, Scalar)):
            self._note(other, "a key that is not a word")
        return made

    def _place(self, start: Any, end: Any, *, empty: bool) -> tuple[Source, int, int]:
        """Return where a collection starts and ends; to a parser a block ends behind blanks and comments."""
        begins, ends = start.start_mark.index + self.shift, end.end_mark.index + self.shift
        if start.anchor or start.tag:
            begins = _after_properties(self._source.text, begins)
        if start.flow_style or empty:
            self._last_end = ends
        else:
            ends = self._last_end
        return self._source, begins, ends

    def _alias(self, event: Any, depth: int) -> Node:
        known = self._anchors.get(event.anchor)
        if known is None:
            raise self._broken(event, f"the alias *{event.anchor} names no finished value above it")
        node, values, levels = known
        self._last_end = event.end_mark.index + self.shift
        self._values += values
        if self._values > MAX_VALUES or depth + levels > MAX_DEPTH:
            raise self._too_large(event, depth + levels)
        return node

    def _note(self, node: Node, message: str) -> None:
        self.odd.append(Broken(message, node.span))

    def _too_large(self, event: Any, depth: int) -> _BrokenError:
        if depth > MAX_DEPTH:
            return self._broken(event, f"values are nested more than {MAX_DEPTH} deep")
        return self._broken(event, f"the text stands for more than {MAX_VALUES} values, aliases written out")

    def _broken(self, event: Any, message: str) -> _BrokenError:
        at = (event.start_mark.index + self.shift, event.end_mark.index + self.shift)
        return _BrokenError(Broken(message, self._source.span(*at)))
