"""`trainlaunch ps`: the runs on this machine, or in a namespace of a cluster."""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import signal
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.job_arguments import CONTRACT_EXIT_CODES
from trainlaunch.cli.arguments.run_argument import (
    add_owner_argument,
    add_run_target_argument,
    opened_store,
    owned_by,
    say_once,
    targets_of,
)
from trainlaunch.cli.output.report import document
from trainlaunch.cli.output.streams import Streams
from trainlaunch.sanitize import one_line
from trainlaunch.units import age

if TYPE_CHECKING:
    from trainlaunch.run.base.run_query import Candidate
    from trainlaunch.run.base.store import Run, RunRow

EXAMPLES = ("trainlaunch ps", "trainlaunch ps --running --owner any", "trainlaunch ps --output json")
EXIT_CODES = CONTRACT_EXIT_CODES
COLUMNS = ("JOB", "RUN", "OWNER", "STATE", "EXIT", "AGE", "SHM", "TARGET")
SHRINKING = 3  # of those the first may be cut, so that a line fits
AGE = "AGE"
WIDTH = 80
MIN_WIDTH = 8
MIN_ROWS = 3
WATCH_SECONDS = 2.0
_CLEAR = "\x1b[H\x1b[J"
Row = tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    formats = ("text", "json", "names")
    parser.add_argument(
        "-o", "--output", choices=formats, default="text", help="format of the result; names are for completion"
    )
    parser.add_argument("--running", action="store_true", help="only those that run now")
    parser.add_argument("--watch", action="store_true", help=f"again every {WATCH_SECONDS:.0f} s, until Ctrl-C")
    add_owner_argument(parser, default="those of all")
    add_run_target_argument(parser, "all but clusters")


def run(args: argparse.Namespace, streams: Streams) -> int:
    """List every run, newest first."""
    with opened_store(args, targets_of(args)) as store:

        def runs() -> Sequence[Run]:
            found = [each for each in owned_by(args.owner, store.runs()) if each.running or not args.running]
            for each in store.left_out(found=bool(found)):
                say_once(each)
            return found

        def documents() -> list[dict[str, object]]:
            return [each.document() for each in store.statuses(runs())]

        if args.output == "json":
            return repeated(args, streams, lambda: streams.result(document({"runs": documents()})))
        if args.output == "names":
            return repeated(args, streams, lambda: streams.result(names(runs())))
        nothing = f"there are no runs of trainlaunch{store.elsewhere}"
        shown = Table(streams, COLUMNS, live=args.watch, shrinking=SHRINKING, nothing=nothing)
        return repeated(args, streams, lambda: shown.show([_cells(each) for each in store.rows(runs())]))


def repeated(args: argparse.Namespace, streams: Streams, show: Callable[[], None]) -> int:
    """Show it, and with --watch again and again until Ctrl-C, at once where the terminal has another size."""
    show()
    if args.watch:
        resized: queue.SimpleQueue[None] = queue.SimpleQueue()  # safe in a signal handler, as an Event is not
        before = signal.signal(signal.SIGWINCH, lambda *_: resized.put(None))
        try:
            while True:
                streams.finish()
                with contextlib.suppress(queue.Empty):
                    resized.get(timeout=WATCH_SECONDS)
                show()
        finally:
            signal.signal(signal.SIGWINCH, before)
    return 0


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


def names(found: Sequence[Candidate]) -> str:
    """Return what RUN may be, a line each."""
    return "".join(f"{name}\n" for name in dict.fromkeys(name for run in found for name in (run.job, run.id)))


def _cells(row: RunRow) -> Row:
    run = row.run
    return (
        run.job,
        run.id,
        run.owner or "-",
        row.state,
        "-" if row.exit_code is None else str(row.exit_code),
        age(time.time() - run.created),
        row.shm,
        run.target,
    )
