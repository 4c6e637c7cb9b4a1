"""Records that trainlaunch.inside.marked writes, taken out of a job's output as it streams."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

START, END = b"\x1etrainlaunch ", b"\x1f"
MAX_SPAN_BYTES = 4096  # bytes of one line, its marks included
MAX_CHUNKS = 4096  # of all records that are not whole yet
_LINE_ENDS = (b"\n", b"\r\n")  # the second one where a terminal stands between


class MarkedStream:
    """Passes bytes on at once and unchanged, but for marked records, which go to `record`.

    Records may stand inside a line, be cut anywhere between reads, and those of several processes may alternate. What
    only looks like one is passed on, as soon as that is known; a record whose rest never comes is dropped at the end.
    """

    def __init__(self, record: Callable[[dict[str, Any]], None]) -> None:
        self._record = record
        self._held = b""
        self._unfinished: dict[bytes, dict[int, bytes]] = {}  # spans by number, of each record
        self._count = 0  # of all these spans

    def feed(self, data: bytes) -> bytes:
        """Return what the user sees of `data` and of what was held back; holds a span that isn't whole yet."""
        data, self._held = self._held + data, b""
        shown, at = bytearray(), 0
        while (start := data.find(START[:1], at)) >= 0:
            shown += data[at:start]
            length = self._span(data, start)
            if length is None:
                self._held = data[start:]
                return bytes(shown)
            span = data[start : start + (length or 1)]
            shown += self._take(span) if length else span
            at = start + len(span)
        return bytes(shown + data[at:])

    def end(self) -> bytes:
        """Return what was held back, when nothing more comes."""
        held, self._held = self._held, b""
        return held

    @staticmethod
    def _span(data: bytes, start: int) -> int | None:
        """Return the length of the span that begins at `start`: 0 where none does, None where more must be read."""
        if not data.startswith(START, start):
            return None if START.startswith(data[start : start + len(START)]) else 0
        limit = start + MAX_SPAN_BYTES
        line = data.find(b"\n", start, limit)
        end = data.find(END, start, line if line >= 0 else limit)
        if line < 0:
            return None if len(data) < limit else 0
        closed = end >= 0 and data[end + 1 : line + 1] in _LINE_ENDS and data.find(START[:1], start + 1, end) < 0
        return line + 1 - start if closed else 0

    def _take(self, span: bytes) -> bytes:
        """Keep a chunk, `ID i/n TEXT` between its marks, and hand a record on that is whole; return what is none."""
        name, _, rest = span[len(START) :].partition(b" ")
        index, _, count = rest.partition(b" ")[0].partition(b"/")
        if not (index.isdigit() and count.isdigit() and len(index + count) < 11):
            return span
        if not 1 <= int(index) <= int(count) <= MAX_CHUNKS:
            return span
        spans = self._unfinished.setdefault(name + b" " + count, {})
        if int(index) in spans:  # each comes once
            return span
        spans[int(index)] = span
        self._count += 1
        if len(spans) == int(count):
            return self._finished(name + b" " + count)
        return self._given_up(next(iter(self._unfinished))) if self._count > MAX_CHUNKS else b""

    def _given_up(self, record: bytes) -> bytes:
        """Forget an unfinished record, and return its spans in order."""
        spans = self._unfinished.pop(record)
        self._count -= len(spans)
        return b"".join(spans[each] for each in sorted(spans))

    def _finished(self, record: bytes) -> bytes:
        """Hand a record on of which all chunks are there; return its spans where it is none."""
        spans = self._given_up(record)
        text = b"".join(each.split(b" ", 3)[3].rpartition(END)[0] for each in spans.split(START[:1])[1:])
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return spans
        if not isinstance(found, dict):
            return spans
        self._record(found)
        return b""
