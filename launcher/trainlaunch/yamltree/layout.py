"""Where the parts of lists and mappings stand in their text: dashes, colons, comments and line ends between nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

from trainlaunch.yamltree.tolerant import Mapping, Node, Scalar, Sequence

_GAP = re.compile(r"(?:\s|#[^\n\r]*)*")
_ALIAS = re.compile(r"\*[^\s,\[\]{}]+")
_COMMENT_LINE = re.compile(r"^[ \t]*(?=#)", re.MULTILINE)
_BLOCK_HEADER = re.compile(r"[|>][-+0-9]*")
_MARK = "\ufeff"


class Entry(NamedTuple):
    """One value of a list or mapping, as offsets in the text.

    `begin` is that of its dash, key or `?`, or of itself in `[…]`; `marker` is just behind the dash or colon; `start`
    and `end` are the value's with anchor and tag, or those of an alias. Of an empty value both are the same.
    """

    begin: int
    marker: int
    start: int
    end: int
    key: Node | None
    value: Node


def is_flow(node: Node) -> bool:
    """Return whether a list or mapping stands in brackets or braces."""
    if isinstance(node, Scalar) or node.source.text[node.start : node.start + 1] not in ("[", "{"):
        return False
    first = node.pairs[0][0] if isinstance(node, Mapping) and node.pairs else None
    return first is None or first.start > node.start


def is_block(node: Node) -> TypeGuard[Sequence | Mapping]:
    """Return whether a value takes lines of its own below its key: a list or mapping without brackets."""
    return not isinstance(node, Scalar) and not is_flow(node)


def entries(node: Sequence | Mapping) -> list[Entry]:
    """Return the parts of a list or mapping in source order; each `<<` is one too."""
    text, flow = node.source.text, is_flow(node)
    pairs = node.pairs if isinstance(node, Mapping) else tuple((None, item) for item in node.items)
    found: list[Entry] = []
    at = node.start + flow
    for key, value in pairs:
        at = gap(text, at)
        if flow and text[at : at + 1] == ",":
            at = gap(text, at + 1)
        begin = at
        marker = begin + (not flow) if key is None else _after_colon(text, key, begin)
        start, at = _value(text, value, marker)
        found.append(Entry(begin, marker, start, at, key, value))
    return found


def gap(text: str, at: int) -> int:
    """Return where the blanks and comments that start at `at` end."""
    match = _GAP.match(text, at)
    return match.end() if match else at


def _after_colon(text: str, key: Node, begin: int) -> int:
    """Return where a key's colon ends, or the key itself where it has none (`{a, b}`)."""
    if text[begin : begin + 1] == "?" and text[begin + 1 : begin + 2].isspace():
        begin = gap(text, begin + 1)
    end = _value(text, key, begin)[1]
    colon = gap(text, end)
    return colon + 1 if text[colon : colon + 1] == ":" else end


def _value(text: str, node: Node, marker: int) -> tuple[int, int]:
    start = gap(text, marker)
    if node.start < marker and (alias := _ALIAS.match(text, start)):
        return start, alias.end()
    if isinstance(node, Scalar) and not node.raw:
        end = max(node.end, marker)
        return end, end
    return start, node.end


def line_start(text: str, at: int) -> int:
    """Return where the line of `at` starts; a byte order mark stands before the first."""
    start = text.rfind("\n", 0, at) + 1
    return start + (start == 0 and text.startswith(_MARK))


def line_end(text: str, at: int) -> int:
    """Return where the line of `at` ends, its line break left out."""
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return end - 1 if end > at and text[end - 1] == "\r" else end


def after_line(text: str, at: int) -> int:
    """Return where the line after that of `at` starts, or the end of the text."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def after_empty_lines(text: str, start: int) -> int:
    """Return the start of the first line from that at `start` on that has more than blanks, or the end of the text."""
    while start < len(text) and _is_empty(text, start):
        start = after_line(text, start)
    return start


def column(text: str, at: int) -> int:
    """Return how many characters stand before `at` on its line."""
    return at - line_start(text, at)


def alone(text: str, at: int) -> bool:
    """Return whether nothing but blanks stands before `at` on its line."""
    return not text[line_start(text, at) : at].strip(" \t")


def comment_at(text: str, at: int) -> str:
    """Return the comment that follows `at` on its line, or nothing."""
    rest = text[at : line_end(text, at)].lstrip(" \t")
    return rest if rest.startswith("#") else ""


def comments_above(text: str, at: int, floor: int) -> int:
    """Return the start of the first of the comment lines right above that of `at`, and of its column.

    None starts before `floor`; without any it is the start of the line of `at`.
    """
    start, wanted = line_start(text, at), column(text, at)
    while start > floor:
        above = line_start(text, start - 1)
        match = _COMMENT_LINE.match(text, above)
        if above < floor or match is None or match.end() - above != wanted:
            break
        start = above
    return start


def comments_below(text: str, at: int, wanted: int) -> int:
    """Return the end of the comment lines that follow from the line start `at` on, indented by more than `wanted`."""
    end = at
    for start, indent in _comment_lines(text, at):
        if indent <= wanted:
            break
        end = after_line(text, start)
    return end


def comment_follows(text: str, at: int, wanted: int) -> bool:
    """Return whether the next line of a text after that of `at` is a comment indented by more than `wanted`."""
    return any(indent > wanted for _, indent in _comment_lines(text, after_line(text, at)))


def _comment_lines(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Yield start and indentation of comment lines from the line start `at` on, with blank lines between them."""
    while at < len(text):
        match = _COMMENT_LINE.match(text, at)
        if match:
            yield at, match.end() - at
        elif not _is_empty(text, at):
            return
        at = after_line(text, at)


def _is_empty(text: str, start: int) -> bool:
    return not text[start : line_end(text, start)].strip(" \t")


def block_header(text: str, at: int) -> int:
    """Return where the `|` or `>` of a block scalar ends with its indicators; `at` itself where there is none."""
    match = _BLOCK_HEADER.match(text, at)
    return match.end() if match else at


def keeps_lines(node: Node) -> bool:
    """Return whether what a node ends with is a block scalar that has the empty lines below it (`|+`)."""
    while not isinstance(node, Scalar):
        below = node.items if isinstance(node, Sequence) else [value for _, value in node.pairs]
        if is_flow(node) or not below:
            return False
        node = below[-1]
    return not node.plain and "+" in node.raw[: block_header(node.raw, 0)]
