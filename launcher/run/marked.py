"""Records that launcher.inside.marked writes, taken out of a job's output as it streams."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

START, END = b"\x1etrainlaunch ", b"\x1f"
LONGEST_SPAN = 4096  # bytes of one line, its marks included
MOST_CHUNKS = 4096
MOST_UNFINISHED = 256  # records of which some chunks are missing
_LINE_ENDS = (b"\n", b"\r\n")  # the second one where a terminal stands between


class MarkedStream:
    """Passes bytes on at once and unchanged, but for marked records, which go to `record`.

    Records may stand inside a line, be cut anywhere between reads, and those of several processes may alternate. What
    only looks like one is passed on.
    """

    def __init__(self, record: Callable[[dict[str, Any]], None]) -> None:
        self._record = record
        self._held = b""
        self._chunks: dict[bytes, dict[int, bytes]] = {}

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
            if not length or not self._take(data[start + len(START) : start + length]):
                length = length or 1
                shown += data[start : start + length]
            at = start + length
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
        limit = start + LONGEST_SPAN
        line = data.find(b"\n", start, limit)
        end = data.find(END, start, line if line >= 0 else limit)
        if line < 0:
            return None if len(data) < limit else 0
        closed = end >= 0 and data[end + 1 : line + 1] in _LINE_ENDS and data.find(START[:1], start + 1, end) < 0
        return line + 1 - start if closed else 0

    def _take(self, span: bytes) -> bool:
        """Keep a chunk, `ID i/n TEXT`, and hand a record on that is whole; False where it isn't one."""
        name, _, rest = span.partition(b" ")
        place, _, rest = rest.partition(b" ")
        index, _, count = place.partition(b"/")
        if not (index.isdigit() and count.isdigit() and len(place) < 12):
            return False
        if not 1 <= int(index) <= int(count) <= MOST_CHUNKS:
            return False
        chunks = self._chunks.setdefault(name, {})
        chunks[int(index)] = rest[: rest.rindex(END)]
        if len(chunks) == int(count):
            del self._chunks[name]
            return self._whole(b"".join(chunks[each] for each in sorted(chunks)))
        if len(self._chunks) > MOST_UNFINISHED:
            del self._chunks[next(iter(self._chunks))]
        return True

    def _whole(self, text: bytes) -> bool:
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            return False
        if not isinstance(record, dict):
            return False
        self._record(record)
        return True
