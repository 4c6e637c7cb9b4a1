"""A part of a local run's log: from which frame it is read, and each of its lines with the time that it came."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

from trainlaunch.run.base.backend import Chunk
from trainlaunch.run.base.log_position import TimePosition, last_lines
from trainlaunch.run.base.private_files import UnusableState
from trainlaunch.run.base.timestamps import rfc3339
from trainlaunch.run.local.follow import placed_frames, said
from trainlaunch.run.local.log_times import LogTimes
from trainlaunch.run.local.state import RunFolder

TAIL_BYTES = 64 * 1024  # of a log, where its last lines are looked for first


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
