"""Several containers of one job: lines with their node's number, one end, one newest run. Without an engine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.backend import Chunk, ContainerInfo
from trainlaunch.run.base.multi_node import Prefixed, SessionGroup, deciding, ends_of, merged, newest_of
from trainlaunch.run.docker.client import Endpoint, unreachable

from tests.run.scripted import BLANK


def written(*chunks: Chunk) -> tuple[bytes, bytes]:
    """Return both streams as Prefixed writes them."""
    prefixed = Prefixed()
    out = [Chunk(each.stderr, prefixed.take(each)) for each in chunks]
    out += prefixed.rest()
    return tuple(b"".join(each.data for each in out if each.stderr is stderr) for stderr in (False, True))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([b"one\ntwo\n"], b"[1] one\n[1] two\n"),
        ([b"on", b"e\ntw", b"o"], b"[1] one\n[1] two\n"),
        ([b"\n\n"], b"[1] \n[1] \n"),
        ([b"10%\r20%\r30%\n"], b"[1] 10%\r[1] 20%\r[1] 30%\n"),
        ([b"a\r\nb\r", b"\nc\r", b"d\n"], b"[1] a\r\n[1] b\r\n[1] c\r[1] d\n"),
        ([b"\xff\x00"], b"[1] \xff\x00\n"),
        ([b"x" * 65_537, b"y\n"], b"[1] " + b"x" * 65_537 + b"\n[1] y\n"),
        ([], b""),
    ],
)
def test_each_line_has_its_nodes_number(pieces: list[bytes], text: bytes) -> None:
    """However the bytes are cut, those of progress bars too; the last line gets an end."""
    assert written(*(Chunk(False, each, 1) for each in pieces))[0] == text


def test_nodes_and_streams_do_not_mix_within_a_line() -> None:
    """A line is written when it is whole."""
    chunks = (Chunk(False, b"a", 0), Chunk(False, b"b", 1), Chunk(True, b"e\n", 0), Chunk(False, b"A\n", 0))
    assert written(*chunks) == (b"[0] aA\n[1] b\n", b"[0] e\n")


def test_the_only_container_prints_its_own_bytes() -> None:
    """No number, no held back part of a line."""
    assert Prefixed().take(Chunk(False, b"no end")) == b"no end"


def test_streams_are_merged_as_they_come() -> None:
    """A slow node holds up no other one, and each chunk has its node."""
    go_on = threading.Event()

    def slow() -> Iterator[Chunk]:
        assert go_on.wait(30)
        yield Chunk(False, b"slow")

    together = merged([slow(), iter([Chunk(True, b"quick")])])
    assert next(together) == Chunk(True, b"quick", 1)
    go_on.set()
    assert list(together) == [Chunk(False, b"slow", 0)]


class Scripted:
    """A session that ends with a code when it is told to."""

    def __init__(self, code: int | None) -> None:
        self.code = code
        self.over = threading.Event()
        self.closed = False

    def chunks(self) -> Iterator[Chunk]:
        """Print nothing."""
        return iter(())

    def exit_code(self) -> int | None:
        """Wait, then return the code."""
        assert self.over.wait(30)
        return self.code

    def close(self) -> None:
        """Note it."""
        self.closed = True


def test_the_first_failure_stops_the_others_once_and_is_the_code() -> None:
    """Also where the others then fail with codes of their own."""
    sessions = [Scripted(143), Scripted(3), Scripted(143)]
    stops = []

    def stop() -> None:
        stops.append(1)
        for each in sessions:
            each.over.set()

    sessions[1].over.set()
    together = SessionGroup(sessions, stop)
    assert together.exit_code() == 3
    assert stops == [1]
    together.close()
    assert all(each.closed for each in sessions)


@pytest.mark.parametrize(("codes", "code", "stopped"), [([0, 0], 0, False), ([0, None], None, True)])
def test_nobody_is_stopped_where_nobody_failed(codes: list[int | None], code: int | None, stopped: bool) -> None:
    """Zero only where all have it; a lost one is a failure without a code."""
    sessions = [Scripted(each) for each in codes]
    for each in sessions:
        each.over.set()
    stops: list[int] = []
    assert SessionGroup(sessions, lambda: stops.append(1)).exit_code() == code
    assert bool(stops) is stopped


def test_what_a_wait_raises_is_raised_to_who_waits() -> None:
    """An engine that goes away ends the waiting, and leaves no one hanging."""

    def lost() -> int:
        raise TargetUnavailable(unreachable(Endpoint("unix:///gone", ""), "reset").diagnostics)

    with pytest.raises(TargetUnavailable):
        list(ends_of([lost, lambda: 0]))


def node(number: int, code: int | None, finished: float = 0.0, error: str = "") -> ContainerInfo:
    """Return a container of a job of several nodes."""
    status = "running" if code is None and not error else "exited"
    return replace(BLANK, id=str(number), node=number, exit_code=code, status=status, finished=finished, error=error)


@pytest.mark.parametrize(
    ("containers", "decides"),
    [
        ([node(0, 0, 5), node(1, 0, 4)], 0),
        ([node(0, 1, 5), node(1, 3, 4)], 1),
        ([node(0, 0, 3), node(1, 3, 4)], 1),
        ([node(0, 0, 3), node(1, None)], 1),
        ([node(0, None), node(1, None, 2, "no such device")], 1),
    ],
)
def test_whose_end_is_the_jobs(containers: list[ContainerInfo], decides: int) -> None:
    """The first to fail in time, else one that still runs, else the first node."""
    assert deciding(containers).node == decides


def test_the_newest_run_has_all_its_nodes_and_no_older_ones() -> None:
    """By node, whichever was created last; a single container is a run of its own."""
    new = [replace(node(number, None), run="b", attempt=2) for number in range(3)]
    old = [replace(node(number, 1), run="b", attempt=1) for number in range(3)]
    assert newest_of([new[2], new[0], new[1], *old]) == tuple(new)
    single = replace(BLANK, run="c")
    assert newest_of([single, *new]) == (single,)
