"""Joins this process's terminal, or its pipes, with a command in a container: bytes, size, Ctrl-C, exit code."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NamedTuple, Protocol

from trainlaunch.exit_codes import EXIT_BEFORE_START
from trainlaunch.run.shell.commands import BEATS_SECONDS

PIECE = 1 << 16


class Size(NamedTuple):
    """A terminal's rows and columns."""

    rows: int
    columns: int


class Command(Protocol):
    """A command that runs in a container, its streams open."""

    def output(self) -> Iterator[tuple[bool, bytes]]:
        """Yield what it writes, with whether that is stderr, until it ends or the connection does."""

    def send(self, data: bytes) -> None:
        """Write to its stdin. Raises OSError where it is gone."""

    def end_input(self) -> None:
        """Let it read the end of its stdin."""

    def resize(self, size: Size) -> None:
        """Tell its terminal the size of ours."""

    def exit_code(self) -> int | None:
        """Return its exit code after the output's end; None where nobody knows it."""

    def close(self) -> None:
        """Let go of it."""


class Gone(Exception):
    """A signal that ends this process: its number."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


def has_terminal() -> bool:
    """Whether both stdin and stdout are a terminal, so that the command gets one too."""
    return sys.stdin is not None and os.isatty(0) and os.isatty(1)


def terminal_size() -> Size:
    """Return the size of this terminal."""
    rows, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(1, termios.TIOCGWINSZ, bytes(8)))
    return Size(rows or 24, columns or 80)


@contextlib.contextmanager
def ending_signals() -> Iterator[None]:
    """Raise Gone in the main thread for what ends this process, so that everything is taken away on the way out."""

    def handler(number: int, _frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)  # the way out is short, and nothing may cut it
        raise Gone(number)

    before = {each: signal.getsignal(each) for each in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)}
    for each in before:
        signal.signal(each, handler)
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, old)


def join(command: Command, *, terminal: bool) -> int:
    """Pass bytes on until the command ends, and return its exit code; 125 where the connection broke before.

    Raises Gone. With `terminal` every key is the program's, Ctrl-C too.
    """
    with _raw() if terminal else contextlib.nullcontext(), _following_size(command, terminal=terminal):
        threading.Thread(target=_feed, args=(command,), daemon=True).start()
        for stderr, data in command.output():
            _write(2 if stderr else 1, data)
    code = command.exit_code()
    return EXIT_BEFORE_START if code is None else code


@contextlib.contextmanager
def alive(lifeline: Command) -> Iterator[None]:
    """Write to a lifeline now and then; its end ends what it belongs to."""
    over = threading.Event()

    def beat() -> None:
        with contextlib.suppress(OSError):
            while not over.wait(BEATS_SECONDS):
                lifeline.send(b"\n")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        lifeline.close()


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    before = termios.tcgetattr(0)
    try:
        tty.setraw(0, termios.TCSANOW)
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(0, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _following_size(command: Command, *, terminal: bool) -> Iterator[None]:
    if not terminal:
        yield
        return
    changed = threading.Event()
    over = False

    def follow() -> None:
        while changed.wait() and not over:
            changed.clear()
            with contextlib.suppress(OSError):
                command.resize(terminal_size())

    def handler(_number: int, _frame: FrameType | None) -> None:
        changed.set()

    threading.Thread(target=follow, daemon=True).start()
    before: Callable[[int, FrameType | None], object] | int | None = signal.signal(signal.SIGWINCH, handler)
    changed.set()
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
        over = True
        changed.set()


def _feed(command: Command) -> None:
    try:
        while data := os.read(0, PIECE):
            command.send(data)
        command.end_input()
    except OSError:
        pass  # either side is gone; the output's end tells


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
