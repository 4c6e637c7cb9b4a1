"""The two streams of the command line: stdout is the result, stderr is everything else."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple, TextIO


class Streams(NamedTuple):
    """Where results (`out`) and everything else (`err`) go."""

    out: TextIO
    err: TextIO

    def result(self, text: str) -> None:
        """Write a piece of the result to stdout as it is."""
        self.out.write(text)

    def say(self, text: str) -> None:
        """Write one line to stderr."""
        self.err.write(text + "\n")
        self.err.flush()


def standard_streams() -> Streams:
    """Return the process's own streams."""
    return Streams(sys.stdout, sys.stderr)


def coloured(stream: TextIO, choice: str = "auto") -> bool:
    """Return whether to colour one stream: the option, then NO_COLOR, FORCE_COLOR, then whether it is a terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty()
