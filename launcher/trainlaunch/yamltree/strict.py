"""YAML text as a small tree of nodes that keep their source spelling and place; nothing is converted or executed.

Built from parser events, not from constructed values: PyYAML, Compose and Kubernetes disagree on `no`, `1e3`, `08` and
`0o14`, so the spelling has to survive until the table of fields says what is asked. Aliases share nodes, and their
written-out size is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import yaml

from trainlaunch.diagnostics import Diagnostic, Placed, Report, Span

MAX_VALUES = 10_000
MAX_CHARACTERS = 4 * 1024 * 1024
MAX_DEPTH = 64

# What YAML forbids, and NEL, LS and PS: YAML 1.1 takes those three for line ends, editors and YAML 1.2 don't.
_FORBIDDEN = "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
_NOT_IN_A_STRING = "[\0\ud800-\udfff]"
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_QUOTES = frozenset("'\"|>")  # a plain scalar's style is None from PyYAML's own parser and '' from libyaml


class ScalarNode(NamedTuple):
    """One scalar: `text` is the source spelling of a plain scalar and the value of a quoted or block one."""

    text: str
    plain: bool
    span: Span
    kind: str = "job"

    @property
    def null(self) -> bool:
        """Whether this is YAML's null, in any spelling."""
        return self.plain and self.text in _NULLS


class MappingNode(NamedTuple):
    """A mapping in source order; each key maps to its own scalar and its value."""

    items: dict[str, tuple[ScalarNode, Node]]
    span: Span
    kind: str = "job"


class SequenceNode(NamedTuple):
    """A list in source order."""

    items: tuple[Node, ...]
    span: Span
    kind: str = "job"


Node: TypeAlias = "ScalarNode | MappingNode | SequenceNode"


def parse_yaml(text: str, file: str, report: Report) -> Node | None:
    """Return the tree of the one document in `text`, or None where a fatal error was put in `report`.

    Duplicate keys, tags and keys that are no words are put in `report` too, but reading goes on.
    """
    text = text.removeprefix("\ufeff")
    forbidden = None if text.replace("\n", "").isprintable() else re.search(_FORBIDDEN, text)
    if forbidden:
        report.take(_forbidden_character(text, forbidden.start(), file))
        return None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Builder(iter(loader(text).get_event, None), file, report).document()
    except yaml.MarkedYAMLError as error:
        from trainlaunch.yamltree.syntax import syntax_error

        report.take(syntax_error(error, text, file))
    except _FatalError as error:
        report.take(error.diagnostic)
    return None


def place_of(text: str, index: int) -> tuple[int, int]:
    """Return the 1-based line and column, in characters, of `text[index]`."""
    before = re.split(r"\r\n|\r|\n", text[:index])
    return len(before), len(before[-1]) + 1


def _forbidden_character(text: str, index: int, file: str) -> Diagnostic:
    line, column = place_of(text, index)
    number = ord(text[index])
    escape = f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
    or_escape = f", or write {escape} in a string in double quotes" if number else ""
    return Diagnostic(
        code="TL102",
        message=f"the file holds the character U+{number:04X}, which YAML does not allow as it stands",
        why="readers of YAML drop it, refuse it or take it for the end of a line",
        fix=f"delete it{or_escape}",
        span=Span(file, line, column, line, column + 1),
    )


class _FatalError(Exception):
    """Reading can't go on; carries its diagnostic."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic.message)


class _Builder:
    """Builds the tree from parser events, counting what the aliases stand for."""

    def __init__(self, events: Iterator[Any], file: str, report: Report) -> None:
        self._events = events
        self._file = file
        self._report = report
        self._anchors: dict[str, tuple[Node, int, int]] = {}
        self._open_anchors: set[str] = set()
        self._values = 0
        self._characters = 0

    def document(self) -> Node | None:
        """Return the only document's root; None when there is none."""
        next(self._events)  # start of stream
        first = next(self._events)
        if isinstance(first, yaml.StreamEndEvent):
            return None
        root = self._node(next(self._events), 0)
        next(self._events)  # end of document
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._fatal("TL102", after, "a second document starts here", fix="keep one job in each file")
        return root

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if event.tag is not None:
            self._refuse_tag(event)
        if depth > MAX_DEPTH:
            raise self._fatal("TL112", event, f"values are nested more than {MAX_DEPTH} deep", fix="delete the nesting")
        values, characters = self._values, self._characters
        if event.anchor:
            self._open_anchors.add(event.anchor)
        node = self._collection_or_scalar(event, depth)
        self._count(event, values=1, characters=len(node.text) if isinstance(node, ScalarNode) else 0)
        if event.anchor:
            self._open_anchors.discard(event.anchor)
            self._anchors[event.anchor] = (node, self._values - values, self._characters - characters)
        return node

    def _collection_or_scalar(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event, depth)
        scalar = ScalarNode(event.value, event.style not in _QUOTES, self._span(event, event))
        # Only double quotes have escapes, and nothing else brings in what the text itself may not hold.
        quoted = event.style == '"' and not event.value.isprintable()
        bad = re.search(_NOT_IN_A_STRING, event.value) if quoted else None
        if bad:
            number = ord(bad.group())
            self._report.add(
                "TL107",
                scalar,
                message=f"the string holds U+{number:04X}, which no argument or variable can carry",
                why="the kernel ends strings at NUL, and lone surrogates are no characters",
                fix="delete the escape",
            )
        return scalar

    def _mapping(self, event: Any, depth: int) -> MappingNode:
        items: dict[str, tuple[ScalarNode, Node]] = {}
        merges: list[Node] = []
        end, last = event, None
        while not isinstance(end := next(self._events), yaml.MappingEndEvent):
            key = self._node(end, depth + 1)
            last = self._node(next(self._events), depth + 1)
            if not isinstance(key, ScalarNode) or key.null:
                found = "empty" if isinstance(key, ScalarNode) else "a list or mapping"
                self._report.add("TL105", key, message=f"a key is {found}; expected a word", fix="write name: value")
            elif key.plain and key.text == "<<":
                merges.append(last)
            elif key.text in items:
                report_duplicate_key(key.text, key, items[key.text][0], self._report)
            else:
                items[key.text] = (key, last)
        for merged in merges:
            self._merge(items, merged)
        return MappingNode(items, self._block_span(event, end, last))

    def _sequence(self, event: Any, depth: int) -> SequenceNode:
        items: list[Node] = []
        while not isinstance(end := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(end, depth + 1))
        return SequenceNode(tuple(items), self._block_span(event, end, items[-1] if items else None))

    def _merge(self, items: dict[str, tuple[ScalarNode, Node]], merged: Node) -> None:
        """Add the keys of a `<<` value that are not set beside it; the first of several mappings wins."""
        for each in merged.items if isinstance(merged, SequenceNode) else (merged,):
            if not isinstance(each, MappingNode):
                self._report.add("TL105", each, message="<< takes a mapping", fix="write <<: *name, of a mapping")
                continue
            for name, entry in each.items.items():
                items.setdefault(name, entry)
            self._values += len(each.items)

    def _alias(self, event: Any) -> Node:
        name = event.anchor
        if name in self._open_anchors:
            raise self._fatal(
                "TL112",
                event,
                f"the alias *{name} stands inside the value that it names",
                fix=f"write the value out instead of *{name}",
            )
        if name not in self._anchors:
            close = ", ".join(f"*{each}" for each in self._anchors)
            raise self._fatal(
                "TL102",
                event,
                f"the alias *{name} names no value above it",
                fix=f"write {close}, or put &{name} before the value" if close else f"put &{name} before the value",
            )
        node, values, characters = self._anchors[name]
        self._count(event, values, characters)
        return node

    def _count(self, event: Any, values: int, characters: int) -> None:
        self._values += values
        self._characters += characters
        if self._values > MAX_VALUES or self._characters > MAX_CHARACTERS:
            limits = f"{MAX_VALUES} values or {MAX_CHARACTERS} characters"
            raise self._fatal(
                "TL112",
                event,
                f"the file stands for more than {limits}, aliases written out",
                fix="write fewer aliases, or delete values",
            )

    def _refuse_tag(self, event: Any) -> None:
        short = event.tag.replace("tag:yaml.org,2002:", "!!")
        self._report.take(
            Diagnostic(
                code="TL105",
                message=f"the tag {short} is not read",
                why="a job file holds plain values; no tag converts or runs anything",
                fix="delete the tag, and write the value in double quotes" if short == "!!str" else "delete the tag",
                span=self._span(event, event),
            )
        )

    def _span(self, start: Any, end: Any) -> Span:
        first, last = start.start_mark, end.end_mark
        return Span(self._file, first.line + 1, first.column + 1, last.line + 1, last.column + 1)

    def _block_span(self, start: Any, end: Any, last: Node | None) -> Span:
        """Return a collection's span; a block one ends with its last value, since the parsers' end marks differ."""
        if start.flow_style or last is None:
            return self._span(start, end)
        first = start.start_mark
        return Span(self._file, first.line + 1, first.column + 1, last.span.end_line, last.span.end_column)

    def _fatal(self, code: str, event: Any, message: str, *, fix: str) -> _FatalError:
        return _FatalError(Diagnostic(code=code, message=message, fix=fix, span=self._span(event, event)))


def report_duplicate_key(text: str, key: Placed, first: Placed, report: Report) -> None:
    """Put in `report` that the key `text` stands in the mapping already, at `first`."""
    name = text if len(text) <= 60 else f"{text[:59]}…"
    one, two = first.span.line, key.span.line
    same = one == two
    report.add(
        "TL103",
        key,
        message=f"the key {name} stands twice in one mapping, on line{f' {one}' if same else f's {one} and {two}'}",
        why="most readers of YAML keep the last one and say nothing",
        fix="delete one of them" if same else f"delete line {one} or line {two}",
    )
