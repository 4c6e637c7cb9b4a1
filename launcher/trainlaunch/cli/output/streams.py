"""The two streams of the command line, and how text stands on them: in colour, wrapped on a terminal, in tables.

stdout is the result, stderr is everything else.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError
from trainlaunch.sanitize import one_line, sanitize

MIN_COLUMNS = 40  # a narrower terminal wraps as it likes
_TO_PASTE = r"`[^`\n]*`"
_SPACE = "\0"  # stands for one that no line ends at; text that is shown holds none


class TextStyle(NamedTuple):
    """`columns` is the width of a terminal, None where nothing is wrapped: in a file, a pipe, CI."""

    colour: bool = False
    columns: int | None = None


def style_of(stream: TextIO) -> TextStyle:
    """Return how text stands on one stream."""
    return TextStyle(coloured(stream), columns_of(stream))


def coloured(stream: TextIO) -> bool:
    """Return whether to colour one stream: NO_COLOR, then FORCE_COLOR, then whether it is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty()


def columns_of(stream: TextIO) -> int | None:
    """Return the width of the terminal that a stream is, None where it is none or tells none."""
    if not stream.isatty():
        return None
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return None
    return columns if columns >= MIN_COLUMNS else None


def wrapped(text: str, columns: int | None, indent: int = 0) -> str:
    """Return a text whose lines have at most `columns` characters; further lines of one are indented.

    What stands in backticks is pasted into a shell, so it stays on one line, however long it is.
    """
    if columns is None or all(len(line) <= columns for line in text.split("\n")):
        return text
    whole = re.sub(_TO_PASTE, lambda found: found[0].replace(" ", _SPACE), text)
    return "\n".join(_filled(line, columns, indent) for line in whole.split("\n")).replace(_SPACE, " ")


def _filled(line: str, columns: int, indent: int) -> str:
    if len(line) <= columns:
        return line
    import textwrap  # little is wrapped: what a terminal shows

    further = " " * indent
    return textwrap.fill(line, columns, subsequent_indent=further, break_long_words=False, break_on_hyphens=False)


class Streams(NamedTuple):
    """Where results (`out`) and everything else (`err`) go."""

    out: TextIO
    err: TextIO

    def result(self, text: str) -> None:
        """Write a piece of the result to stdout as it is. Raises UsageError where stdout takes no more."""
        with self.writable():
            self.out.write(text)

    def finish(self) -> None:
        """Write out what stdout still holds back. Raises UsageError where stdout takes no more."""
        with self.writable():
            self.out.flush()

    def close(self) -> None:
        """Let go of what no stream takes any more, so that the interpreter's own last flush can't fail."""
        for each in self:
            try:
                each.flush()
            except (OSError, ValueError):
                _abandon(each)

    def abandon(self) -> None:
        """Let stdout's rest go nowhere, so that the interpreter's own last flush can't fail."""
        _abandon(self.out)

    @contextlib.contextmanager
    def writable(self, *, stderr: bool = False) -> Iterator[None]:
        """Turn a failed write into UsageError; a reader that went away stays BrokenPipeError."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as cause:
            _abandon(self.err if stderr else self.out)
            raise UsageError([_cannot_write("stderr" if stderr else "stdout", cause)]) from cause

    def say(self, text: str) -> None:
        """Write one line to stderr; what is not Visible yet is made so.

        Where stderr takes no more, what we say goes nowhere: it ends no command, and changes no exit code.
        """
        with contextlib.suppress(OSError):
            self.err.write(fitted(text, self.err) + "\n")
            self.err.flush()

    def row(self, text: str, indent: int = 2) -> None:
        """Write a line of the result that people read; what a terminal has no room for goes on below, indented."""
        self.result(wrapped(sanitize(text), columns_of(self.out), indent) + "\n")

    def show(self, text: str) -> None:
        """Write a piece of the result that people read, made Visible. Raises UsageError as `result` does."""
        self.result(sanitize(text))


def fitted(text: str, stream: TextIO) -> str:
    """Return a line of ours as it is written to a stream: Visible, and wrapped where a terminal is narrower."""
    shown = sanitize(text)
    return wrapped(shown, columns_of(stream), 2) if shown.startswith("trainlaunch: ") else shown


def _abandon(stream: TextIO) -> None:
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


def _cannot_write(name: str, cause: OSError) -> Diagnostic:
    return Diagnostic(
        "TL116",
        f"{name} can't be written: {cause.strerror or cause}",
        "send it to a file on a disk with space, or to a program that reads it",
        why="what was written so far is not the whole result",
    )


def standard_streams() -> Streams:
    """Return the process's own streams; a closed one takes everything and keeps nothing.

    Results are UTF-8 in every locale, since the same job gives the same bytes.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    return Streams(_open(sys.stdout), _open(sys.stderr))


def _open(stream: TextIO | None) -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8") if stream is None else stream


AGE = "AGE"  # of the column whose cells change by themselves
WIDTH = 80
MIN_WIDTH = 8
MIN_ROWS = 3
_CLEAR = "\x1b[H\x1b[J"
Row = tuple[str, ...]


class Table:
    """Rows below their headings; shown again, it takes its own place on a terminal, else it adds the rows that are new.

    The widest of the first `shrinking` columns are cut until a line has at most 80 characters, and a `live` table on a
    terminal is cut to that.
    """

    def __init__(self, streams: Streams, columns: Row, *, live: bool, shrinking: int = 0, nothing: str) -> None:
        self._streams = streams
        self._live = live
        self._columns = columns
        self._shrinking = shrinking
        self._nothing = nothing
        self._before: set[Row] | None = None

    def show(self, rows: Sequence[Row]) -> None:
        """Show rows; where there are none that is said."""
        again, known = self._before is not None, self._before or set()
        self._before = {self._ageless(each) for each in rows}
        live = self._streams.out.isatty() and self._live
        fresh = [each for each in rows if live or self._ageless(each) not in known]
        if live and again:
            self._streams.result(_CLEAR)
            self._streams.finish()  # before what stderr says on the same terminal
        if not rows and (live or known or not again):
            self._streams.say(self._nothing)
        if fresh:
            headed = [] if again and not live else [self._columns]
            text = table([*headed, *fresh], shrinking=self._shrinking)
            self._streams.show(cut(text, os.get_terminal_size(self._streams.out.fileno())) if live else text)

    def _ageless(self, row: Row) -> Row:
        """Return what of a row doesn't change by itself."""
        return tuple(cell for name, cell in zip(self._columns, row, strict=True) if name != AGE)


def table(rows: Sequence[Row], *, shrinking: int = 0) -> str:
    """Return rows as lines whose columns stand below each other; the first `shrinking` may be cut to fit 80."""
    widths = [max(len(one_line(row[column])) for row in rows) for column in range(len(rows[0]))]
    while shrinking and sum(widths) + 2 * (len(widths) - 1) > WIDTH and max(widths[:shrinking]) > MIN_WIDTH:
        widths[widths.index(max(widths[:shrinking]))] -= 1
    lines = ("  ".join(_cell(cell, width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(line.rstrip() + "\n" for line in lines)


def cut(text: str, size: os.terminal_size) -> str:
    """Return as much of some lines as a terminal shows at once, with the number of those that it doesn't."""
    columns, rows = size.columns or WIDTH, size.lines or MIN_ROWS
    lines = [line if len(line) <= columns else f"{line[: columns - 1]}…" for line in text.splitlines()]
    kept = max(MIN_ROWS, rows - 1) - 1  # the cursor's own, and the one that says how many are left out
    if len(lines) > kept + 1:
        lines = [*lines[:kept], f"… and {len(lines) - kept} more"]
    return "".join(f"{line}\n" for line in lines)


def _cell(text: str, width: int) -> str:
    text = one_line(text)
    return text.ljust(width) if len(text) <= width else f"{text[: width - 1]}…"
