"""A job's output and our own lines on the same two streams: neither changes the other."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from typing import TextIO

from trainlaunch.cli.output.streams import Streams, fitted

OTHER = {"stdout": "stderr", "stderr": "stdout"}
GOES_ON = "the job goes on, and `trainlaunch logs` has it all"


def write_bytes(stream: TextIO, data: bytes) -> None:
    """Write a job's bytes to a text stream unchanged, at once."""
    raw = getattr(stream, "buffer", None)
    if raw is None:
        stream.write(data.decode(errors="replace"))
    else:
        raw.write(data)
    stream.flush()


class Screen:
    """What a followed job is shown on. A stream that takes no more ends nothing: the job goes on without it."""

    def __init__(self, streams: Streams) -> None:
        self._streams = {"stdout": streams.out, "stderr": streams.err}
        self._gone: set[str] = set()
        self._last = {"stdout": b"\n", "stderr": b"\n"}
        # Asked now: one that has hung up says that it never was a terminal.
        self._terminals = {name for name, each in self._streams.items() if each.isatty()}
        self.left = False  # whether the terminal is given up
        self._one_terminal = len(self._terminals) == len(self._streams)

    def out(self, data: bytes) -> None:
        """Write the job's stdout."""
        self._write("stdout", data)

    def err(self, data: bytes) -> None:
        """Write the job's stderr."""
        self._write("stderr", data)

    def say(self, text: str) -> None:
        """Say a line of ours."""
        self.line(f"trainlaunch: {text}")

    def line(self, text: str) -> None:
        """Write a line to stderr, below an unfinished one of the job's, like that of a progress bar."""
        self._line("stderr", text)

    def leave(self, why: str) -> None:
        """Go on without a terminal: what pointed to it points to nothing, for all that this process starts too.

        A file or a pipe is still written.
        """
        if self.left:
            return
        self.left = True
        self.say(f"{why}: {GOES_ON}")
        self._gone |= self._terminals
        _close(0, *(_descriptor(self._streams[name]) for name in self._terminals))

    def _line(self, name: str, text: str) -> None:
        unfinished = self._last[name] != b"\n" or (self._one_terminal and self._last[OTHER[name]] != b"\n")
        stream = self._streams[name]
        shown = "\n" * unfinished + fitted(text, stream)
        self._attempt(name, lambda: _write_line(stream, shown), b"\n")
        if self._one_terminal:
            self._last[OTHER[name]] = b"\n"

    def _write(self, name: str, data: bytes) -> None:
        if data:
            self._attempt(name, lambda: write_bytes(self._streams[name], data), data[-1:])

    def _attempt(self, name: str, write: Callable[[], None], last: bytes) -> None:
        if name in self._gone:
            return
        try:
            write()
            self._last[name] = last
        except OSError as cause:
            self._gone.add(name)
            if cause.errno == errno.EIO and name in self._terminals:
                self.leave("the terminal has hung up")
            elif isinstance(cause, BrokenPipeError):
                self._tell_other(name, f"nobody reads {name} any more")
            else:
                self._tell_other(name, f"{name} can't be written: {cause.strerror or cause}")
            self._forget(name)

    def _forget(self, name: str) -> None:
        """Let what a stream holds back go nowhere, so that the interpreter's own last flush can't fail."""
        _close(_descriptor(self._streams[name]))
        with contextlib.suppress(OSError, ValueError):
            self._streams[name].flush()

    def _tell_other(self, name: str, what: str) -> None:
        """Say on the other stream that one is closed; stdout is the job's own, so it is told to a terminal only."""
        if OTHER[name] == "stderr" or OTHER[name] in self._terminals:
            self._line(OTHER[name], f"trainlaunch: {what}; {GOES_ON}")


def _descriptor(stream: TextIO) -> int | None:
    """Return the descriptor of a stream, None of one that is memory."""
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None


def _write_line(stream: TextIO, text: str) -> None:
    stream.write(text + "\n")
    stream.flush()


def _close(*descriptors: int | None) -> None:
    """Point descriptors to nothing: a closed one would be given to the next file that is opened."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in descriptors:
        if each is not None:
            os.dup2(nothing, each)
    os.close(nothing)
