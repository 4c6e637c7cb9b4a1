"""A table of rows on a stream: once, or again and again on a terminal that it fits."""

from __future__ import annotations

import os
from collections.abc import Sequence

from trainlaunch.cli.output.streams import Streams
from trainlaunch.sanitize import one_line

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
