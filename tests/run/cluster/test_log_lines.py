"""A log that is asked for again gives each line once, whatever the API sends twice."""

from __future__ import annotations

import random

import pytest
from trainlaunch.run.kubernetes.logs import LineDeduplicator
from trainlaunch.run.kubernetes.output import prefixed
from trainlaunch.run.kubernetes.pods import Pod, pod_from

SECOND = "2026-11-28T03:00:{:02d}.{:09d}Z"


def stamp(second: int, nano: int = 0) -> bytes:
    """Return a timestamp as the kubelet writes it."""
    return SECOND.format(second, nano).encode()


def test_lines_of_the_last_seconds_are_left_out_once_each() -> None:
    """The API continues from a whole second, so that lines of it come again."""
    seen = LineDeduplicator()
    first = [(stamp(1), b"a\n"), (stamp(2, 5), b"b\n"), (stamp(2, 5), b"b\n")]
    assert [seen.is_new(*line) for line in first] == [True, True, True]
    assert seen.resume() == "2026-11-28T03:00:01Z"
    again = [*first, (stamp(2, 5), b"b\n"), (stamp(2, 6), b"c\n")]
    assert [line for line in again if seen.is_new(*line)] == again[3:]
    assert not seen.gap()


def test_a_time_zone_of_the_node_changes_nothing() -> None:
    """The time to ask from is written in UTC: a plus sign would be a space in a query."""
    seen = LineDeduplicator()
    assert seen.is_new(b"2026-11-28T05:00:10.5+02:00", b"a\n")
    assert seen.resume() == "2026-11-28T03:00:09Z"


def test_lines_that_a_rotation_took_are_noticed() -> None:
    """None of the last lines comes again, and new ones do."""
    seen = LineDeduplicator()
    assert seen.is_new(stamp(1), b"a\n")
    seen.resume()
    assert seen.is_new(stamp(9), b"z\n")
    assert seen.gap()
    assert not seen.gap()


@pytest.mark.parametrize("seed", range(20))
def test_any_cuts_give_each_line_once_in_order(seed: int) -> None:
    """Two streams reach the file a little out of order, with equal timestamps and equal lines."""
    chance = random.Random(seed)  # noqa: S311  cuts, no secrets
    lines = []
    for index in range(400):
        second, jitter = divmod(index * 50 + chance.randrange(-20, 20), 1000)
        lines.append(
            (stamp(max(0, second), max(0, jitter) * 1_000_000 // 50 * 50), f"{chance.randrange(5)}\n".encode())
        )
    seen, got, have = LineDeduplicator(), [], 0
    while have < len(lines):
        since = seen.resume()
        start = next((i for i, (at, _) in enumerate(lines) if since is None or at[:19] >= since[:19].encode()), 0)
        have = min(len(lines), max(have, start) + chance.randrange(1, 60))
        got += [line for line in lines[start:have] if seen.is_new(*line)]
    assert got == lines


def pod_of_rank(rank: int | None) -> Pod:
    """Return a pod of an Indexed Job, or one of its own."""
    labels = {} if rank is None else {"batch.kubernetes.io/job-completion-index": str(rank)}
    return pod_from({"metadata": {"name": "p", "uid": "u", "labels": labels}})


def test_every_line_gets_its_rank_also_empty_ones_and_a_cut_one() -> None:
    """The next line of another pod must not continue it."""
    assert prefixed(b"a\n\nb", pod_of_rank(1)) == b"[1] a\n[1] \n[1] b\n"
    assert prefixed(b"a\n", pod_of_rank(None)) == b"[p] a\n"
