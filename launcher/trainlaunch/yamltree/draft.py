"""The edits of one change of a YAML document, drawn up from where its parts stand; `editor` proves what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from trainlaunch.diagnostics import Edit
from trainlaunch.yamltree import layout as places
from trainlaunch.yamltree.changes import Change, Delete, EditRefused, Insert, Set, index_of, value_of_node
from trainlaunch.yamltree.emitter import Style, block_lines, yaml_inline
from trainlaunch.yamltree.layout import Entry
from trainlaunch.yamltree.tolerant import Mapping, Node, Scalar, Sequence

_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\r\n]*")
_BLANKS = re.compile(r"[ \t\r\n]*")


class _Slot(NamedTuple):
    """Where a value stands: its part of a list or mapping `inside`, and the column of that one's dashes or keys.

    Comments of this part's own start at `floor` or later.
    """

    entry: Entry
    column: int
    flow: bool
    inside: Node | None
    floor: int


class EditDraft:
    """The edits of one change of the document `root` in `text`. What they raise is EditRefused."""

    def __init__(self, text: str, root: Node, style: Style) -> None:
        self._text = text
        self._root = root
        self._style = style
        self._line_break = "\r\n" if "\r\n" in text else "\n"

    def first_expansion(self) -> Edit | None:
        """Return the edit that writes out the first alias or merge, or None where there is none."""
        found = self._aliases(self._root_slot())
        return next((self._expansion(*each) for each in found), None)

    def edits(self, change: Change) -> Iterator[Edit]:
        """Yield the edits of a change whose path is there."""
        slot = self._root_slot()
        if not change.path:
            if isinstance(change, Delete):
                raise EditRefused("a document can't be deleted")
            yield self._replaced(slot, change.value)
            return
        for depth in range(len(change.path) - 1):
            slot = self._below(slot, index_of(slot.entry.value, change.path[: depth + 1]))
        parts = self._parts(slot)
        last = change.path[-1]
        at = last if isinstance(change, Insert) and isinstance(last, int) else self._index(slot, change)
        if isinstance(change, Delete):
            yield self._deleted(slot, at)
        elif at == len(parts):
            added = {last: change.value} if isinstance(change, Set) else [change.value]
            yield self._added(slot, added)
        elif isinstance(change, Insert):
            yield self._inserted(self._below(slot, at), change.value)
        else:
            yield self._replaced(self._below(slot, at), change.value)

    def _root_slot(self) -> _Slot:
        root = self._root
        entry = Entry(root.start, root.start, root.start, root.end, None, root)
        return _Slot(entry, places.column(self._text, root.start), False, None, root.start)

    def _aliases(self, outer: _Slot) -> Iterator[tuple[_Slot, int]]:
        """Yield each alias and each merge, as what it is in and its number there."""
        if isinstance(outer.entry.value, Scalar):
            return
        for at, (_, _, start, _, key, value) in enumerate(self._parts(outer)):
            if value.start < start or (isinstance(key, Scalar) and key.plain and key.text == "<<"):
                yield outer, at
            else:
                yield from self._aliases(self._below(outer, at))

    def _expansion(self, outer: _Slot, at: int) -> Edit:
        node, slot = outer.entry.value, self._below(outer, at)
        key = slot.entry.key
        if not (isinstance(node, Mapping) and isinstance(key, Scalar) and key.plain and key.text == "<<"):
            return self._replaced(slot, value_of_node(slot.entry.value))
        own = {each.text for each, _ in node.pairs if isinstance(each, Scalar)}
        merged = {name: value_of_node(node.items[name]) for name in node.items if name not in own}
        names = {value_of_node(node.keys[name]): value for name, value in merged.items()}
        if not names:
            return self._deleted(outer, at)
        begin, end = slot.entry.begin, slot.entry.end
        if slot.flow:
            return self._edit(begin, end, yaml_inline(names)[1:-1])
        first, *more = self._lines(names, slot.column, end)
        comment = self._comments(slot, own=slot.entry.value.start >= slot.entry.start)
        lines = [comment, first, *more] if comment else [first[slot.column :], *more]
        return self._edit(begin, places.line_end(self._text, end), self._joined(*lines))

    def _index(self, slot: _Slot, change: Change) -> int:
        return index_of(slot.entry.value, change.path, missing=True)

    def _parts(self, slot: _Slot) -> list[Entry]:
        node = slot.entry.value
        if isinstance(node, Scalar):
            raise EditRefused("a scalar has nothing below it")
        if node.start < slot.entry.start:
            raise EditRefused("it is reached by an alias, and what the alias repeats would change too")
        return places.entries(node)

    def _below(self, outer: _Slot, at: int) -> _Slot:
        """Return the place of a part of what stands in another place."""
        node, parts = outer.entry.value, self._parts(outer)
        entry, flow = parts[at], outer.flow or places.is_flow(node)
        if not flow and entry.key is not None and entry.begin != entry.key.start:
            raise EditRefused("a key has an anchor, a tag, an alias or its long form with a question mark")
        floor = places.after_line(self._text, parts[at - 1].end if at else outer.entry.marker)
        return _Slot(entry, places.column(self._text, node.start), flow, node, floor)

    def _replaced(self, slot: _Slot, value: Any) -> Edit:
        entry = slot.entry
        empty = entry.start == entry.end
        if slot.flow:
            colon = "" if slot.inside is None or self._text[entry.marker - 1] == ":" else ":"
            new = yaml_inline(value)
            return self._edit(entry.marker, entry.end, f"{colon} {new}") if empty else self._edit(*entry[2:4], new)
        head, *more = self._body(slot, value)
        own = entry.value.start >= entry.start
        on_lines = own and (places.is_block(entry.value) or self._is_literal(entry.value))
        comment = self._comments(slot, own=own)
        if not more and not on_lines and head:
            return self._edit(entry.marker, entry.end, head) if empty else self._edit(*entry[2:4], head.lstrip(" "))
        if slot.inside is None:
            return self._root_replaced(slot, [head, *more], comment)
        if comment and isinstance(slot.inside, Sequence) and isinstance(value, (dict, list)) and value:
            head, more = f" {comment}", [" " * (slot.column + 1) + head, *more]
        elif comment:
            head = f"{head} {comment}"
        return self._edit(entry.marker, places.line_end(self._text, entry.end), self._joined(head, *more))

    def _root_replaced(self, slot: _Slot, lines: list[str], comment: str) -> Edit:
        start, end = slot.entry.start, places.line_end(self._text, slot.entry.end)
        if lines[0][:1] in ("|", '"'):
            lines[0] += f" {comment}" if comment else ""
        elif comment or not places.alone(self._text, start):  # behind three dashes no key can stand
            lines.insert(0, comment)
        return self._edit(start, end, self._joined(*lines))

    def _body(self, slot: _Slot, value: Any) -> list[str]:
        """Return the lines of a value, the first from behind its colon or dash on."""
        if slot.inside is None:
            apart = not places.alone(self._text, slot.entry.start)
            first, *more = self._lines(value, 0 if apart else slot.column, slot.entry.end)
            return [first.lstrip(" "), *more]
        wrapped = [value] if isinstance(slot.inside, Sequence) else {"k": value}
        first, *more = self._lines(wrapped, slot.column, slot.entry.end)
        return [first[slot.column + len(wrapped) + isinstance(wrapped, dict) :], *more]

    def _comments(self, slot: _Slot, *, own: bool) -> str:
        """Return the comments on the line of a value's key or dash, and on the one where it ends."""
        entry, text = slot.entry, self._text
        start = entry.value.start if own else entry.start
        found = _COMMENT.findall(text[entry.marker : min(places.line_end(text, entry.marker), start)])
        if own and self._is_literal(entry.value):
            found.append(places.comment_at(text, places.block_header(text, start)))
        elif not (own and places.is_block(entry.value)):
            found.append(places.comment_at(text, entry.end))
        return " ".join(filter(None, found))

    def _added(self, slot: _Slot, added: Any) -> Edit:
        """Return the edit that adds one pair or item as the last."""
        node, parts = slot.entry.value, self._parts(slot)
        if not parts:
            return self._replaced(slot, added)
        end = parts[-1].end
        if slot.flow or places.is_flow(node):
            return self._edit(end, end, f", {yaml_inline(added)[1:-1]}")
        lines = self._lines(added, places.column(self._text, node.start), end)
        if not places.keeps_lines(node):
            end = places.line_end(self._text, end)
            return self._edit(end, end, self._joined("", *lines))
        end = places.after_empty_lines(self._text, places.after_line(self._text, end))
        return self._edit(end, end, self._joined(*lines, ""))

    def _inserted(self, slot: _Slot, value: Any) -> Edit:
        """Return the edit that puts an item in front of another, and of the comments above that one."""
        begin = slot.entry.begin
        if slot.flow:
            return self._edit(begin, begin, f"{yaml_inline(value)}, ")
        lines = block_lines([value], slot.column, self._style)
        if places.alone(self._text, begin):
            begin = places.comments_above(self._text, begin, slot.floor)
            return self._edit(begin, begin, self._joined(*lines, ""))
        return self._edit(begin, begin, self._joined(*lines, " " * slot.column)[slot.column :])

    def _deleted(self, slot: _Slot, at: int) -> Edit:
        node, parts, text = slot.entry.value, self._parts(slot), self._text
        if len(parts) == 1:
            return self._replaced(slot, {} if isinstance(node, Mapping) else [])
        gone = self._below(slot, at)
        begin, end = gone.entry.begin, gone.entry.end
        if gone.flow:
            if at + 1 < len(parts):
                return self._edit(begin, parts[at + 1].begin, "")
            before = parts[at - 1].end
            return self._edit(begin if "#" in text[before:begin] else before, end, "")  # a comma may stay
        if not places.alone(text, begin):
            match = _BLANKS.match(text, places.after_line(text, end))
            return self._edit(begin, match.end() if match else end, "")
        end = places.comments_below(text, places.after_line(text, end), gone.column)
        if places.keeps_lines(gone.entry.value) or (at and places.keeps_lines(parts[at - 1].value)):
            end = places.after_empty_lines(text, end)
        return self._edit(places.comments_above(text, begin, gone.floor), end, "")

    def _lines(self, value: Any, indent: int, end: int) -> list[str]:
        """Return a value's lines. No block scalar is among them where it would take in what follows `end`."""
        literal = "\n" in self._text[end:] and not places.comment_follows(self._text, end, indent)
        return block_lines(value, indent, self._style._replace(literal=literal))

    def _joined(self, *lines: str) -> str:
        return self._line_break.join(lines)

    def _edit(self, start: int, end: int, text: str) -> Edit:
        return Edit(self._root.source.span(start, end), text)

    @staticmethod
    def _is_literal(node: Node) -> bool:
        return isinstance(node, Scalar) and not node.plain and node.raw[:1] in ("|", ">")
