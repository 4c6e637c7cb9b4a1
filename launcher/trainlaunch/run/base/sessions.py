"""Sessions with a container: its output as an engine frames it, taken up again where a stream broke.

An engine's multiplexed output has 8-byte headers (stream number, length), each followed by the job's bytes. A followed
run outlives a restart of its engine: the streams break, and are taken up where they were.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.backend import Backend, Chunk, ContainerInfo, Position, Say, Session

HEADER = struct.Struct(">BxxxL")
STDERR = 2
PIECE = 1 << 14  # of a line, which engines keep apart


def frames(read: Callable[[int], bytes]) -> Iterator[Chunk]:
    """Yield what `read(n)` gives, which returns n bytes, or fewer at the end only."""
    while len(header := read(HEADER.size)) == HEADER.size:
        stream, length = HEADER.unpack(header)
        data = read(length) if length else b""
        if data:
            yield Chunk(stderr=stream == STDERR, data=data)
        if len(data) < length:
            return


def chunks_of(response: Any, *, whole: bool = False, framed: bool = True) -> Iterator[Chunk]:
    """Yield the chunks of a streamed response, then close it; without frames, as of a terminal, a chunk a line.

    A lost engine ends the stream as the job's end does; where it must be `whole`, OSError or urllib3's error is raised.
    """
    import urllib3

    lost = () if whole else (OSError, urllib3.exceptions.HTTPError)
    with contextlib.closing(response), contextlib.suppress(*lost):
        yield from frames(response.raw.read) if framed else lines_of(response.raw.stream(PIECE))


def lines_of(pieces: Iterable[bytes]) -> Iterator[Chunk]:
    """Yield what a stream without frames gives in pieces, a line each, as a frame of an engine's log has one.

    A line that doesn't end is given as it comes once it is longer than an engine keeps in one piece.
    """
    held = b""
    for data in pieces:
        *lines, held = (held + data).split(b"\n")
        yield from (Chunk(stderr=False, data=line + b"\n") for line in lines)
        if len(held) >= PIECE:
            yield Chunk(stderr=False, data=held)
            held = b""
    if held:
        yield Chunk(stderr=False, data=held)


BACK_SECONDS = 60.0  # how long an engine may be away
LOOK_SECONDS = 0.5
END_SECONDS = 2.0  # the output closes a moment before the engine notes the end


class LoggedSession:
    """A session with a container that somebody else started: its log from `position`, and the target's wait."""

    def __init__(self, backend: Backend, container: str, position: Position) -> None:
        self._backend = backend
        self._container = container
        self._position = position

    def chunks(self) -> Iterator[Chunk]:
        """Yield the log; a lost engine ends it."""
        with contextlib.suppress(TargetUnavailable):
            yield from self._backend.logs(self._container, follow=True, position=self._position)

    def exit_code(self) -> int | None:
        """Wait for the end; None where the engine was lost, or has forgotten the run."""
        try:
            return self._backend.wait(self._container)
        except TargetUnavailable:
            return None

    def close(self) -> None:
        """Nothing is open."""


class ReconnectingSession:
    """A session that asks the engine, when its streams end, whether the job did; it takes them up at `position`."""

    def __init__(self, session: Session, backend: Backend, container: str, position: Position, *, notice: Say) -> None:
        self._session = session
        self._backend = backend
        self._container = container
        self._position = position
        self._notice = notice
        self._ended = threading.Event()  # the target's wait has answered
        self._looking = threading.Lock()  # the reader and the waiter notice it at once
        self._absences = 0
        self._given_up = False

    def chunks(self) -> Iterator[Chunk]:
        """Yield the output; after an absence of the engine, from its log, what had not come."""
        known = self._absences
        yield from self._session.chunks()
        while self._broke(known) and self._is_there():
            known = self._absences
            with contextlib.suppress(TargetUnavailable):  # away again: the next look says it
                yield from self._backend.logs(self._container, follow=True, position=self._position)

    def exit_code(self) -> int | None:
        """Return the exit code, None where the engine doesn't come back or has forgotten the run."""
        code = self._session.exit_code()
        if code is not None:
            self._ended.set()
        while self._is_there() and code is None:
            try:
                code = self._backend.wait(self._container)
            except TargetUnavailable:
                continue
            break
        return code

    def close(self) -> None:
        """Let go of it."""
        self._session.close()

    def _broke(self, known: int) -> bool:
        """Whether the output closed before its end: the engine went away, or only the connection did."""
        deadline = time.monotonic() + END_SECONDS
        while time.monotonic() < deadline:
            try:
                now = self._backend.inspect(self._container)
            except TargetUnavailable:
                return True
            if now is None or now.status == "created":
                return False
            if now.ended or self._absences > known:
                return self._absences > known
            if self._ended.is_set():
                time.sleep(LOOK_SECONDS / 10)  # its description lags behind its answer
            else:
                self._ended.wait(LOOK_SECONDS / 10)
        return True

    def _is_there(self) -> bool:
        """Wait for an engine that is away; return whether it still knows the run."""
        with self._looking:
            deadline, away = time.monotonic() + BACK_SECONDS, False
            while not self._given_up:
                try:
                    now = self._backend.inspect(self._container)
                except TargetUnavailable:
                    if not away:
                        away = True
                        self._absences += 1
                        self._notice(f"the engine went away; waiting up to {BACK_SECONDS:.0f}s for it to come back")
                    self._given_up = time.monotonic() >= deadline
                    time.sleep(LOOK_SECONDS)
                    continue
                if away and now is not None:
                    self._notice(f"the engine is back, and {_how_it_is(now)}")
                return now is not None
            return False


def _how_it_is(now: ContainerInfo) -> str:
    return f"the job has ended with exit code {now.exit_code}" if now.ended else "the job goes on"
