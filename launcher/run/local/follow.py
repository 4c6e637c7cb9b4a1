"""Reads a local run's log while it grows, and waits for its end, without a word to whoever runs it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from launcher.run.backend import Chunk
from launcher.run.local.record import state_of
from launcher.run.local.state import RunFolder
from launcher.run.stream import HEADER, STDERR

POLL_SECONDS = 0.05
LOOK_SECONDS = 1.0  # between two looks at whether a run without an end still has someone to write it
READ_BYTES = 256 * 1024


class LocalSession:
    """A session with a run that was just started."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def chunks(self) -> Iterator[Chunk]:
        """Yield the log from its first byte to the end."""
        return frames_of(self._folder, follow=True)

    def exit_code(self) -> int | None:
        """Return the recorded code."""
        wait_for_end(self._folder, None)
        ended = self._folder.ended()
        return None if ended is None else ended[0]

    def close(self) -> None:
        """Nothing is open; the job goes on."""


class _End:
    """Whether a run is over, asked often: its record at each call, its processes once a second."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._looked = time.monotonic()

    def reached(self) -> bool:
        if self._folder.ended() is not None:
            return True
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return False
        self._looked = time.monotonic()
        state = state_of(self._folder)
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


def frames_of(folder: RunFolder, *, follow: bool) -> Iterator[Chunk]:
    """Yield what the keeper wrote; with `follow` until the run is over, else until what is there now."""
    end = _End(folder)
    pending = b""
    try:
        log = folder.log.open("rb")
    except FileNotFoundError:  # removed meanwhile
        return
    with log:
        while True:
            last = not follow or end.reached()  # asked first: what is written before the end is read after it
            data = log.read(READ_BYTES)
            pending += data
            while len(pending) >= HEADER.size:
                stream, length = HEADER.unpack_from(pending)
                if len(pending) < HEADER.size + length:
                    break
                yield Chunk(stderr=stream == STDERR, data=pending[HEADER.size : HEADER.size + length])
                pending = pending[HEADER.size + length :]
            if not data:
                if last or not folder.path.exists():
                    return
                time.sleep(POLL_SECONDS)
