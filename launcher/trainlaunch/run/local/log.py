"""A part of a local run's log, each line with the time that it came.

The times are in the file `times` beside the log, an entry of offset and time for each frame. Frames that come within a
millisecond of an entry have that entry's time, as have those whose own a full disk took.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from trainlaunch.run.base.backend import Chunk
from trainlaunch.run.base.clock import rfc3339
from trainlaunch.run.base.log_position import TimePosition, last_lines
from trainlaunch.run.base.private_files import UnusableState, open_own
from trainlaunch.run.local.follow import placed_frames, said
from trainlaunch.run.local.state import RunFolder

NAME = "times"
ENTRY = struct.Struct(">QQ")  # offset in the log, nanoseconds since the epoch
APART = 1_000_000  # nanoseconds between two entries at least
READ_ENTRIES = 4096
_LATEST = 253_402_300_800 * 10**9  # the year 10000, which no time of ours can be written with
TAIL_BYTES = 64 * 1024  # of a log, where its last lines are looked for first


class TimesWriter:
    """Appends an entry before the frame that it is of."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._newest = -APART

    def note(self, offset: int) -> None:
        """Note that a frame comes now at an offset of the log."""
        now = time.time_ns()
        if 0 <= now - self._newest < APART:
            return
        end = os.lseek(self._file, 0, os.SEEK_END)
        try:
            if os.write(self._file, ENTRY.pack(offset, now)) == ENTRY.size:
                self._newest = now
                return
        except OSError:
            pass  # as a short write: the disk is full
        os.ftruncate(self._file, end)


class LogTimes:
    """Reads them. Raises UnusableState where they are not this user's, and FileNotFoundError where there are none."""

    def __init__(self, folder: Path) -> None:
        self._file = os.fdopen(open_own(folder / NAME), "rb", buffering=0)
        self._entries: list[tuple[int, int]] = []
        self._next = 0  # in the list
        self._now = 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def of(self, offset: int) -> int:
        """Return when the frame at an offset came, in nanoseconds since the epoch; offsets are asked in order."""
        while True:
            if self._next == len(self._entries):
                data = self._file.read(READ_ENTRIES * ENTRY.size)
                whole = len(data) - len(data) % ENTRY.size
                self._file.seek(whole - len(data), os.SEEK_CUR)
                self._entries, self._next = list(ENTRY.iter_unpack(data[:whole])), 0
                if not self._entries:
                    return self._now
            start, came = self._entries[self._next]
            if start > offset:
                return self._now
            self._now = min(came, _LATEST - 1)
            self._next += 1

    def go_to(self, offset: int) -> None:
        """Let the next offset that is asked for be this one or a later one."""
        self._file.seek(max(0, self._below(0, offset + 1) - 1) * ENTRY.size)
        self._entries, self._next = [], 0

    def offset_at(self, moment: int) -> int:
        """Return the offset of a frame that came before a time, near it; 0 where none did."""
        return self._offset(self._below(1, moment))

    def frame_below(self, offset: int) -> int:
        """Return the offset of a frame at or before an offset, near it."""
        return self._offset(self._below(0, offset + 1))

    def _offset(self, entries: int) -> int:
        return self._entry(entries - 1)[0] if entries else 0

    def _below(self, column: int, bound: int) -> int:
        """Return how many entries have a `column` below a bound: both columns grow."""
        low, high = 0, os.fstat(self._file.fileno()).st_size // ENTRY.size
        while low < high:
            middle = (low + high) // 2
            if self._entry(middle)[column] < bound:
                low = middle + 1
            else:
                high = middle
        return low

    def _entry(self, number: int) -> tuple[int, int]:
        offset, came = ENTRY.unpack(os.pread(self._file.fileno(), ENTRY.size, number * ENTRY.size))
        return offset, came


def part_of_log(folder: RunFolder, position: TimePosition, *, follow: bool) -> Iterator[Chunk]:
    """Yield the part of a log that a position asks for; with `follow` until the run is over."""
    try:
        times = LogTimes(folder.path)
    except FileNotFoundError:
        if folder.path.exists():
            yield said(
                f"local run {folder.id} has kept no times of its log, so no part of it can be told from the rest"
            )
        return
    except UnusableState as why:
        yield said(f"the times of local run {folder.id} are not read: {why}")
        return
    with contextlib.closing(times):
        since = position.since
        start, skipped = 0 if since is None else times.offset_at(since), 0
        if position.tail is not None:
            start, skipped = _tail_start(folder, times, start, position.tail)
            position.tail = None
        pieces = _pieces(folder, times, follow=follow, start=start)
        for _ in range(skipped):
            next(pieces, None)
        yield from position.take(pieces)


def _pieces(folder: RunFolder, times: LogTimes, *, follow: bool, start: int) -> Iterator[Chunk]:
    """Yield each line, or the part of it that came at once, behind its time."""
    times.go_to(start)
    for place, frame in placed_frames(folder, follow=follow, start=start):
        stamp = f"{rfc3339(times.of(place))} ".encode()
        yield from (Chunk(frame.stderr, stamp + line) for line in _lines(frame.data))


def _lines(data: bytes) -> Iterator[bytes]:
    """Yield lines that end with a newline only: a progress bar's carriage return is within its line."""
    *whole, rest = data.split(b"\n")
    yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def _tail_start(folder: RunFolder, times: LogTimes, least: int, number: int) -> tuple[int, int]:
    """Return the frame where the last lines begin, `least` at the earliest, and how many pieces come before them."""
    size, span = folder.log.stat().st_size, TAIL_BYTES
    while True:
        start = max(least, times.frame_below(max(0, size - span)))
        count = itertools.count()
        before_size = itertools.takewhile(lambda each: each[0] < size, placed_frames(folder, follow=False, start=start))
        pieces = (Chunk(each.stderr, line) for _, each in before_size for line in _lines(each.data))
        kept = len(last_lines((piece for piece, _ in zip(pieces, count, strict=False)), number))
        skipped = next(count) - kept
        if skipped > 0 or start <= least:
            return start, max(0, skipped)
        span *= 4
