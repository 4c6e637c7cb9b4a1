"""A job's output and our own lines on the same two streams: neither changes the other."""

from __future__ import annotations

import contextlib
from typing import TextIO

from launcher.cli.streams import Streams


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
        self._streams = streams
        self._gone: set[str] = set()
        self._last = {"stdout": b"\n", "stderr": b"\n"}
        self._one_terminal = streams.out.isatty() and streams.err.isatty()

    def out(self, data: bytes) -> None:
        """Write the job's stdout."""
        self._write("stdout", self._streams.out, data)

    def err(self, data: bytes) -> None:
        """Write the job's stderr."""
        self._write("stderr", self._streams.err, data)

    def say(self, text: str) -> None:
        """Say a line of ours."""
        self.line(f"trainlaunch: {text}")

    def line(self, text: str) -> None:
        """Write a line to stderr, below an unfinished one of the job's, like that of a progress bar."""
        unfinished = self._last["stderr"] != b"\n" or (self._one_terminal and self._last["stdout"] != b"\n")
        with contextlib.suppress(OSError):
            self._streams.say("\n" * unfinished + text)
        self._last["stderr"] = b"\n"
        if self._one_terminal:
            self._last["stdout"] = b"\n"

    def _write(self, name: str, stream: TextIO, data: bytes) -> None:
        if name in self._gone or not data:
            return
        try:
            write_bytes(stream, data)
            self._last[name] = data[-1:]
        except BrokenPipeError:  # the reader went away, as with `| head`, and knows it
            self._give_up(name)
        except OSError as cause:
            self._give_up(name)
            why = cause.strerror or str(cause)
            self.say(f"{name} can't be written: {why}; the job goes on, and `trainlaunch logs` has it all")

    def _give_up(self, name: str) -> None:
        """Write no more to a stream; what stdout still holds back may not fail again at the end."""
        self._gone.add(name)
        if name == "stdout":
            self._streams.abandon()
