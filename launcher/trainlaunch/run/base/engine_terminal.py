"""The caller's own streams for a job in a container: the engine has the job's terminal, and the keys go there.

It has one only where stdin, stdout and stderr are all the caller's terminal, since an engine's has one stream of
output; else it has a pipe for each.
"""

from __future__ import annotations

import contextlib
import fcntl
import struct
import termios
import threading
import time
from typing import Protocol

from trainlaunch.run.base.caller_terminal import STDERR, STDIN, STDOUT, TypedKeys, is_terminal

_SIZE = struct.Struct("HHHH")
_INTERRUPT = b"\x03"
_KILLS_WITHIN_SECONDS = 10.0  # a second press so soon would kill the job


class Attachment(Protocol):
    """The streams of a container that runs, opened. Each method raises OSError or nothing where it is gone."""

    def send(self, data: bytes) -> None:
        """Write to its stdin."""

    def end_input(self) -> None:
        """Let it read the end of its stdin."""

    def resize(self, rows: int, columns: int) -> None:
        """Give its terminal a size."""

    def signal(self, number: int) -> None:
        """Send a signal to its first process, which hands it on."""

    def makes_signals(self) -> bool:
        """Whether its terminal makes signals of keys now; a program may have taken them for itself."""


class EngineTerminal(TypedKeys):
    """What a container that runs in front of its caller gets: a terminal, or stdin alone."""

    def __init__(self, *, shared: bool = True) -> None:
        super().__init__(shared=shared)
        self.has_terminal = len(self._terminals) == len((STDIN, STDOUT, STDERR))
        self.has_stdin = _is_open(STDIN) and (shared or not is_terminal(STDIN))
        self._attachment: Attachment | None = None
        self._pressed = float("-inf")

    @property
    def shares_output(self) -> bool:
        """Whether the job has a terminal."""
        return self.has_terminal

    def join(self, attachment: Attachment) -> None:
        """Pass on keys and the size from now on."""
        self._attachment = attachment
        self._resize_now()
        if self.has_stdin:
            self._read_keys()

    def resize(self) -> None:
        """Tell the engine, by a thread: a signal handler must not wait for an answer."""
        threading.Thread(target=self._resize_now, daemon=True).start()

    def _resize_now(self) -> None:
        if self._attachment is not None and self.has_terminal:
            with contextlib.suppress(OSError):
                size = fcntl.ioctl(STDOUT, termios.TIOCGWINSZ, _SIZE.pack(0, 0, 0, 0))
                rows, columns, _, _ = _SIZE.unpack(size)
                if rows and columns:
                    self._attachment.resize(rows, columns)

    def signal(self, number: int) -> bool:
        """Send it to the container; False before it runs."""
        if self._attachment is None:
            return False
        self._attachment.signal(number)
        return True

    def _begin(self) -> None:
        """Leave keys where they are until there is a job."""

    def _takes_keys(self) -> bool:
        return self.has_terminal

    def _hand_on(self, typed: bytes) -> None:
        if self._attachment is None:
            return
        if not typed:
            self._attachment.end_input()
            return
        self._attachment.send(typed)
        for _ in range(typed.count(_INTERRUPT) if self.has_terminal else 0):
            now = time.monotonic()
            if now - self._pressed > _KILLS_WITHIN_SECONDS or self._attachment.makes_signals():
                self._on_interrupt()
            self._pressed = now


def _is_open(number: int) -> bool:
    try:
        fcntl.fcntl(number, fcntl.F_GETFD)
    except OSError:
        return False
    return True
