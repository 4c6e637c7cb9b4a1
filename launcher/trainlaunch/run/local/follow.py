"""Reads a local run's log while it grows, and waits for its end, without a word to whoever runs it.

What a full disk doesn't take goes to memory of the run's supervisor, for those who follow it now. Its number as a
descriptor stands in started.json. It is read by /proc, so by nobody but this user, and holds the last megabytes: a
counter that changes when it begins anew, then the log's frames, each behind its length then.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections import deque
from collections.abc import Iterator

from trainlaunch.run.base.backend import Chunk, Say
from trainlaunch.run.base.private_files import UnusableState, open_own
from trainlaunch.run.base.sessions import HEADER, STDERR
from trainlaunch.run.local.processes import ProcessIdentity, kill_marked, marked
from trainlaunch.run.local.record import state_of
from trainlaunch.run.local.state import RunFolder

MAX_BYTES = 8 << 20
_NUMBER = struct.Struct(">Q")


class Overflow:
    """The supervisor's end."""

    def __init__(self) -> None:
        self.file = os.memfd_create("trainlaunch-overflow")
        self._round = 0
        self._begin()

    def write(self, offset: int, frame: bytes) -> None:
        """Keep a frame that would stand at an offset of the log; the oldest go for it, or itself where memory ends."""
        place = os.lseek(self.file, 0, os.SEEK_CUR)
        frame = _NUMBER.pack(offset) + frame
        try:
            if place + len(frame) <= MAX_BYTES and os.write(self.file, frame) == len(frame):
                return
            self._begin()
            os.write(self.file, frame)
        except OSError:
            os.ftruncate(self.file, place)
            os.lseek(self.file, place, os.SEEK_SET)

    def _begin(self) -> None:
        self._round += 1
        os.ftruncate(self.file, 0)
        os.pwrite(self.file, _NUMBER.pack(self._round), 0)
        os.lseek(self.file, _NUMBER.size, os.SEEK_SET)


class OverflowReader:
    """A follower's end; what was there at its beginning is what the log lacks too."""

    def __init__(self, keeper: ProcessIdentity, number: int) -> None:
        self._keeper = keeper
        self._path = f"/proc/{keeper.pid}/fd/{number}"
        self._round = 0
        self._place = _NUMBER.size

    def chunks(self) -> Iterator[tuple[int, Chunk]]:
        """Yield the frames that came since the last call, with their offsets; none where the supervisor is gone."""
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        try:
            yield from self._frames(file) if self._keeper.alive else ()
        finally:
            os.close(file)

    def _frames(self, file: int) -> Iterator[tuple[int, Chunk]]:
        now = os.pread(file, _NUMBER.size, 0)
        if len(now) < _NUMBER.size:
            return
        if now != _NUMBER.pack(self._round):
            self._round, self._place = _NUMBER.unpack(now)[0], _NUMBER.size
        data = os.pread(file, MAX_BYTES, self._place)
        if os.pread(file, _NUMBER.size, 0) != now:
            return  # it has begun anew meanwhile; the next call reads it
        before = _NUMBER.size + HEADER.size
        while len(data) >= before:
            stream, length = HEADER.unpack_from(data, _NUMBER.size)
            if len(data) < before + length:
                return
            yield _NUMBER.unpack_from(data)[0], Chunk(stderr=stream == STDERR, data=data[before : before + length])
            data, self._place = data[before + length :], self._place + before + length


POLL_SECONDS = 0.05
REMOVAL_SECONDS = 2.0
LOOK_SECONDS = 1.0  # between two looks at whether a run without an end still has someone to write it
READ_BYTES = 256 * 1024
STREAMS = frozenset({1, STDERR})
MAX_FRAME = 1 << 20  # the supervisor's own are at most 64 KiB


class LocalSession:
    """A session with a run that was just started."""

    def __init__(self, folder: RunFolder, say: Say = lambda _: None) -> None:
        self._folder = folder
        self._say = say

    def chunks(self) -> Iterator[Chunk]:
        """Yield the log from its first byte to the end."""
        return frames_of(self._folder, follow=True)

    def exit_code(self) -> int | None:
        """Return the recorded code; None where the supervisor, or the folder with the record, is gone."""
        code = recorded_code(self._folder, self._say)
        if code is None and self._folder.path.exists():
            kill_marked(self._folder.path)  # as its supervisor would have, which was killed
        return code

    def close(self) -> None:
        """Nothing is open; the job goes on."""


def recorded_code(folder: RunFolder, say: Say) -> int | None:
    """Block until a run is over and return its exit code; None where nothing tells it.

    Where somebody removed the folder of a run that goes on, `say` hears so, and the end of its processes is the end.
    """
    wait_for_end(folder, None)
    with contextlib.suppress(UnusableState):
        if (ended := folder.ended()) is not None:
            return ended[0]
    until = time.monotonic() + REMOVAL_SECONDS  # `down` removes the folder of processes that it has just killed
    said = False
    while not folder.path.exists() and (left := marked(folder.path)):
        if not said and time.monotonic() > until:
            said = True
            say(f"{folder.path} was removed, and with it log and exit code; the job goes on (pid {left[0]})")
        time.sleep(LOOK_SECONDS)
    return None


class _End:
    """Whether a run is over, asked often: its record at each call, its processes once a second."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._looked = time.monotonic()

    def reached(self) -> bool:
        with contextlib.suppress(UnusableState):
            if self._folder.ended() is not None:
                return True
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return False
        self._looked = time.monotonic()
        try:
            state = state_of(self._folder)
        except UnusableState:  # what is damaged in the record ends no job
            return not marked(self._folder.path)
        return state is None or state.ended


def wait_for_end(folder: RunFolder, seconds: float | None) -> bool | None:
    """Block until a run is over, for `seconds` at most; return True, or None where it goes on."""
    end = _End(folder)
    until = None if seconds is None else time.monotonic() + seconds
    while not end.reached():
        if until is not None and time.monotonic() >= until:
            return None
        if not folder.path.exists():
            return True
        time.sleep(POLL_SECONDS)
    return True


def frames_of(folder: RunFolder, *, follow: bool, start: int = 0) -> Iterator[Chunk]:
    """Yield what the supervisor wrote; with `follow` until the run is over, else until what is there now.

    `start` is the offset of a frame. From where the log is damaged nothing more is read, which a last chunk says.
    """
    return (chunk for _, chunk in placed_frames(folder, follow=follow, start=start))


def placed_frames(folder: RunFolder, *, follow: bool, start: int = 0) -> Iterator[tuple[int, Chunk]]:
    """Yield each frame with its offset in the log, as `frames_of` does."""
    end, overflow = _End(folder), _Overflow(folder)
    pending, place = b"", start
    lost: deque[tuple[int, Chunk]] = deque()
    try:
        log = os.fdopen(open_own(folder.log), "rb")
    except FileNotFoundError:  # removed meanwhile
        return
    except UnusableState as why:
        yield place, said(f"the log of local run {folder.id} is not read: {why}")
        return
    with log:
        log.seek(start)
        while True:
            last = not follow or end.reached()  # asked first: what is written before the end is read after it
            data = log.read(READ_BYTES)
            pending += data
            lost.extend(overflow.chunks() if follow else ())  # asked after: what is lost before a frame comes before it
            while len(pending) >= HEADER.size:
                stream, length = HEADER.unpack_from(pending)
                if stream not in STREAMS or length > MAX_FRAME:
                    yield place, said(f"the log is damaged {len(pending)} bytes before byte {log.tell()}; it ends here")
                    return
                if len(pending) < HEADER.size + length:
                    break
                while lost and lost[0][0] <= place:
                    yield lost.popleft()
                yield place, Chunk(stderr=stream == STDERR, data=pending[HEADER.size : HEADER.size + length])
                pending = pending[HEADER.size + length :]
                place += HEADER.size + length
            if not data:
                while lost:
                    yield lost.popleft()
                if last or not folder.path.exists():
                    return
                time.sleep(POLL_SECONDS)


class _Overflow:
    """What a full disk doesn't take of a run, from when its supervisor is known."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._reader: OverflowReader | None = None

    def chunks(self) -> Iterator[tuple[int, Chunk]]:
        if self._reader is None:
            with contextlib.suppress(UnusableState):
                known, number = self._folder.started(), self._folder.overflow()
                if known is not None and number >= 0:
                    self._reader = OverflowReader(known[0], number)
        if self._reader is not None:
            yield from self._reader.chunks()


def said(text: str) -> Chunk:
    """Return a sentence of ours as the end of a log."""
    return Chunk(stderr=True, data=f"trainlaunch: {text}\n".encode())
