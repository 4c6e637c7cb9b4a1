"""A reading of a log that breaks off goes on where it was: each piece once, whatever is read again."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from trainlaunch.run.base.backend import Chunk, Position
from trainlaunch.run.base.clock import SECOND, nanoseconds, rfc3339
from trainlaunch.run.base.log_position import BytePosition, LogPart, TimePosition, last_lines, position_of

BEGUN = 1_700_000_000 * 10**9


def a_log(seed: int, lines: int = 40) -> list[tuple[int, Chunk]]:
    """Return pieces of both streams with their times; those of one long line have the same, as an engine keeps them."""
    draw, now, log = random.Random(seed), BEGUN, []  # noqa: S311 - cases, no secrets
    for number in range(lines):
        now += draw.choice([1, 500, 3_000, 10**9])
        stderr, pieces = draw.random() < 0.3, draw.choice([1, 1, 1, 3])
        log += [(now, Chunk(stderr, f"{number}.{piece}".encode())) for piece in range(pieces - 1)]
        log.append((now, Chunk(stderr, f"{number}\n".encode())))
    return log


def engine(log: list[tuple[int, Chunk]], query: dict[str, str | int], until: int) -> list[Chunk]:
    """Return what an engine has of a log when it has `until` pieces: the last `tail` of them, from `since` on."""
    tail = int(query.get("tail", until))
    known = log[:until][until - min(tail, until) :]
    whole, _, rest = str(query.get("since", "0.0")).partition(".")
    since = int(whole) * SECOND + int(rest.ljust(9, "0"))
    stamped = "timestamps" in query
    return [
        Chunk(each.stderr, f"{rfc3339(at)} ".encode() + each.data if stamped else each.data)
        for at, each in known
        if at >= since
    ]


def broken(position: Position, log: list[tuple[int, Chunk]], cuts: list[int]) -> list[Chunk]:
    """Read a log that is followed, and cut off after so many pieces each time."""
    got: list[Chunk] = []
    for until in [*cuts, len(log), len(log)]:
        got += position.take(engine(log, position.query(), until))
    return got


def streams(chunks: list[Chunk]) -> tuple[bytes, bytes]:
    """Return the bytes of each stream."""
    out = b"".join(each.data for each in chunks if not each.stderr)
    return out, b"".join(each.data for each in chunks if each.stderr)


@pytest.mark.parametrize("seed", range(60))
def test_each_piece_comes_once_over_interruptions(seed: int) -> None:
    """Of a whole log, of its last pieces, of those since a time; times stand before lines alone."""
    log = a_log(seed)
    draw = random.Random(seed)  # noqa: S311
    ends = [number + 1 for number, (_, each) in enumerate(log) if each.data.endswith(b"\n")]
    cuts = sorted(draw.choices(ends, k=3))
    pieces = [each for _, each in log]
    assert streams(broken(position_of(LogPart()), log, cuts)) == streams(pieces)
    tail = draw.randint(1, cuts[0])
    assert streams(broken(TimePosition(LogPart(tail=tail)), log, cuts)) == streams(pieces[cuts[0] - tail :])
    at = log[draw.randint(0, cuts[0] - 1)][0]
    since = LogPart(since=at)
    late = [each for when, each in log if when >= at]
    assert streams(broken(TimePosition(since), log, cuts)) == streams(late)


def test_a_whole_log_goes_on_in_the_middle_of_a_chunk() -> None:
    """How the engine cuts its log into chunks may differ between two readings."""
    position = BytePosition()
    assert list(position.take([Chunk(False, b"abcd")])) == [Chunk(False, b"abcd")]
    again = [Chunk(False, b"abc"), Chunk(True, b"xyz"), Chunk(False, b"def")]
    assert list(position.take(again)) == [Chunk(True, b"xyz"), Chunk(False, b"ef")]


def test_a_time_stands_before_each_line_and_within_none() -> None:
    """Docker's own `--timestamps` puts one before each 16 KiB of a line."""
    stamp = f"{rfc3339(BEGUN + 1)} ".encode()
    raw = [Chunk(False, stamp + b"lo"), Chunk(True, stamp + b"bad\n"), Chunk(False, stamp + b"ng\n")]
    got = list(TimePosition(LogPart(timestamps=True)).take(raw))
    assert [each.data for each in got] == [stamp + b"lo", stamp + b"bad\n", b"ng\n"]
    assert stamp == b"2023-11-14T22:13:20.000000001Z "
    assert nanoseconds(stamp.decode().strip()) == BEGUN + 1
    assert nanoseconds("2023-11-14T23:13:20.5+01:00") == BEGUN + SECOND // 2
    assert nanoseconds("0001-01-01T00:00:00Z") == 0


def test_whole_seconds_are_not_taken_for_earlier_ones() -> None:
    """Podman writes no fraction: a line of the asked second may have come after the asked moment."""
    raw = [Chunk(False, f"2023-11-14T22:13:{second}Z {second}\n".encode()) for second in (19, 20, 21)]
    got = TimePosition(LogPart(since=BEGUN + SECOND // 2)).take(raw)
    assert [each.data for each in got] == [b"20\n", b"21\n"]


def test_the_last_lines_are_of_both_streams_together() -> None:
    """A line without an end is one; none are none."""
    pieces = [Chunk(number % 2 == 0, f"{number}\n".encode()) for number in range(9)] + [Chunk(False, b"rest")]
    for number in range(12):
        kept = list(last_lines(pieces, number))
        assert kept == pieces[max(0, len(pieces) - number) :]
    assert all(a.data < b.data for a, b in pairwise(last_lines(pieces, 4)))
