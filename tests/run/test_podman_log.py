"""A log that is followed on Podman is whole, whatever Podman drops at its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from trainlaunch.run.base.backend import Chunk
from trainlaunch.run.base.log_position import BytePosition
from trainlaunch.run.podman.log import followed

LINES = [Chunk(stderr=number % 7 == 0, data=f"{number}\n".encode()) for number in range(400)]


@pytest.mark.parametrize("until_end", [0, 1, 150, 400])
def test_lines_that_podman_drops_after_the_end_are_read_again(until_end: int) -> None:
    """Whole up to the job's end, every third line after it: what is shown is each line once, in order."""
    over = threading.Event()

    def read(follow: bool) -> Iterator[Chunk]:
        if not follow:
            yield from LINES
            return
        yield from LINES[:until_end]
        over.set()
        yield from LINES[until_end::3]

    got = list(followed(read, BytePosition(), goes_on=lambda: not over.is_set(), wait=over.wait))
    for stderr in (False, True):
        wanted = b"".join(each.data for each in LINES if each.stderr is stderr)
        assert b"".join(each.data for each in got if each.stderr is stderr) == wanted
