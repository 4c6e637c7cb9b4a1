"""Which part of a log is asked for, and where its reading stands, so that a reading that breaks off is taken up again.

A whole log goes on by bytes. A part of one goes on by its lines' times: nobody reads gigabytes for the last ten lines.
What is read for a part has the time of each piece in front of it, as engines write it with `timestamps`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trainlaunch.run.base.backend import Chunk, Position
from trainlaunch.run.base.clock import SECOND, epoch, nanoseconds

OVERLAP = 2 * SECOND  # stdout and stderr reach an engine by two ways, a little out of order


class LogPart(NamedTuple):
    """The last `tail` lines (None: all) of those since a time (nanoseconds), each with its time in front or not."""

    tail: int | None = None
    since: int | None = None
    timestamps: bool = False


WHOLE = LogPart()


class BytePosition:
    """In a whole log: the bytes of each stream that were taken."""

    def __init__(self) -> None:
        self._taken = {False: 0, True: 0}

    def query(self) -> dict[str, str | int]:
        """Ask for all: how an engine cuts a log may differ between two readings."""
        return {}

    def take(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield what comes after those bytes."""
        known = dict(self._taken)
        for chunk in chunks:
            passed = min(known[chunk.stderr], len(chunk.data))
            known[chunk.stderr] -= passed
            if passed < len(chunk.data):
                self._taken[chunk.stderr] += len(chunk.data) - passed
                yield Chunk(chunk.stderr, chunk.data[passed:])


class TimePosition:
    """In a part of a log: per stream the newest time that was taken, and how many pieces of that time."""

    def __init__(self, part: LogPart) -> None:
        self.part = part
        self.tail = part.tail  # until the first reading has had it
        self._begun = 0
        self._first = b""
        self._last: dict[bool, tuple[bytes, int]] = {}
        self._within_line = {False: False, True: False}
        self._before = {False: part.since is not None, True: part.since is not None}

    def query(self) -> dict[str, str | int]:
        """Ask for times, and for those since the last one; `tail` is the first reading's alone."""
        since, tail = self.since, self.tail
        self._begun = self._begun or time.time_ns()
        asked: dict[str, str | int] = {"timestamps": 1}
        if since is not None:
            asked["since"] = epoch(since)
        if tail is not None:
            asked["tail"] = tail
        self.tail = None
        return asked

    @property
    def since(self) -> int | None:
        """From when on pieces are still wanted; None for all."""
        if self._last:
            return max(nanoseconds(stamp.decode()) for stamp, _ in self._last.values()) - OVERLAP
        return self._begun if self._begun and self.part.tail is not None else self.part.since

    def take(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield new pieces, with their times where those are asked for."""
        known = dict(self._last)
        for chunk in chunks:
            stamp, _, data = chunk.data.partition(b" ")
            if self._is_new(chunk.stderr, stamp, known):
                self._note(chunk.stderr, stamp)
                yield self._timed(chunk.stderr, stamp, data)

    def _is_new(self, stderr: bool, stamp: bytes, known: dict[bool, tuple[bytes, int]]) -> bool:
        if stderr in known:
            last, count = known[stderr]
            if stamp < last:
                return False
            # Of a line that an engine keeps in pieces of one time, `tail` may have given the last of them alone.
            if stamp == last and (count or (stamp == self._first and self.part.tail is not None and b"." in stamp)):
                known[stderr] = (last, count - 1)
                return False
            del known[stderr]
        elif stderr not in self._last and stamp < self._first:
            return False  # before the last lines that were asked for
        if self._before[stderr]:
            self._before[stderr] = _latest(stamp) < (self.part.since or 0)
        return not self._before[stderr]

    def take_last(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield the last lines of a reading of all, where the engine's own `tail` won't do."""
        number, self.tail = self.tail or 0, None
        for chunk in last_lines(map(self._noted, chunks), number):
            stamp, _, data = chunk.data.partition(b" ")
            if self._is_new(chunk.stderr, stamp, {}):
                yield self._timed(chunk.stderr, stamp, data)

    def _noted(self, chunk: Chunk) -> Chunk:
        self._note(chunk.stderr, chunk.data.partition(b" ")[0])
        return chunk

    def _note(self, stderr: bool, stamp: bytes) -> None:
        self._first = self._first or stamp
        last, count = self._last.get(stderr, (b"", 0))
        self._last[stderr] = (stamp, count + 1 if stamp == last else 1)

    def _timed(self, stderr: bool, stamp: bytes, data: bytes) -> Chunk:
        begins = not self._within_line[stderr]
        self._within_line[stderr] = not data.endswith(b"\n")
        return Chunk(stderr, stamp + b" " + data if begins and self.part.timestamps else data)


def position_of(part: LogPart) -> Position:
    """Return the beginning of a part."""
    return BytePosition() if part == WHOLE else TimePosition(part)


def last_lines(chunks: Iterable[Chunk], number: int) -> deque[Chunk]:
    """Return the pieces of the last lines, of both streams together; a piece has one line's end at most."""
    kept: deque[Chunk] = deque()
    lines = 0
    for chunk in chunks:
        kept.append(chunk)
        lines += chunk.data.endswith(b"\n")
        while kept and lines + (not kept[-1].data.endswith(b"\n")) > number:
            lines -= kept.popleft().data.endswith(b"\n")
    return kept


def _latest(stamp: bytes) -> int:
    """Return the latest moment that a time means: Podman writes whole seconds."""
    return nanoseconds(stamp.decode()) + (0 if b"." in stamp else SECOND - 1)
