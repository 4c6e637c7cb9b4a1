"""Where output of a local run goes that a full disk doesn't take: memory of its keeper, for those who follow it now.

Its number as a descriptor stands in started.json. It is read by /proc, so by nobody but this user, and holds the last
megabytes: a counter that changes when it begins anew, then the log's frames, each behind its length then.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from trainlaunch.run.base.backend import Chunk
from trainlaunch.run.base.stream import HEADER, STDERR
from trainlaunch.run.local.processes import ProcessIdentity

MAX_BYTES = 8 << 20
_NUMBER = struct.Struct(">Q")


class Overflow:
    """The keeper's end."""

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
        """Yield the frames that came since the last call, with their offsets; none where the keeper is gone."""
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
