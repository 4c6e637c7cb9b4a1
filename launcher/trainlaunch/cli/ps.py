"""`trainlaunch ps`: the runs on this machine."""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import signal
import time
from collections.abc import Callable, Sequence
from itertools import filterfalse
from typing import TYPE_CHECKING

from trainlaunch.cli.common import CONTRACT_EXIT_CODES
from trainlaunch.cli.report import document
from trainlaunch.cli.run_argument import RUN_TARGETS, add_owner_argument, add_run_target_argument, owned_by, say_once
from trainlaunch.cli.streams import Streams
from trainlaunch.sanitize import one_line
from trainlaunch.units import format_size

if TYPE_CHECKING:
    from trainlaunch.run.backend import Started
    from trainlaunch.run.choice import Candidate
    from trainlaunch.run.machine_runs import MachineRun

EXAMPLES = ("trainlaunch ps", "trainlaunch ps --running --owner any", "trainlaunch ps --output json")
EXIT_CODES = CONTRACT_EXIT_CODES
COLUMNS = ("JOB", "RUN", "OWNER", "STATE", "EXIT", "AGE", "SHM", "TARGET")
SHRINKING = 3  # of those the first may be cut, so that a line fits
AGE = "AGE"
WIDTH = 80
LEAST_WIDTH = 8
LEAST_ROWS = 3
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
    """List every run of this host, and every container that carries our labels, newest first."""
    from trainlaunch.run.machine_runs import machine

    with machine((args.target,) if args.target else tuple(reversed(RUN_TARGETS)), say_once) as places:

        def is_clear(run: MachineRun) -> bool:
            """Whether a list tells enough: not which of several nodes failed first, nor what JSON has besides."""
            return args.output != "json" and run.failed < 2

        def runs() -> Sequence[MachineRun]:
            found = [each for each in owned_by(args.owner, places.runs()) if each.running or not args.running]
            clear, unclear = filter(is_clear, found), filterfalse(is_clear, found)
            found = sorted([*clear, *places.described([*unclear], whole=True)], key=_made, reverse=True)
            for away in places.unreachable.values():
                say_once(f"runs are left out: {away}")
            return found

        if args.output == "json":
            return repeated(args, streams, lambda: streams.result(document({"runs": _documents(runs())})))
        if args.output == "names":
            return repeated(args, streams, lambda: streams.result(names(runs())))
        shown = Table(
            streams, COLUMNS, live=args.watch, shrinking=SHRINKING, nothing="there are no runs of trainlaunch"
        )
        return repeated(args, streams, lambda: shown.show([_row(each, time.time()) for each in runs()]))


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
    while shrinking and sum(widths) + 2 * (len(widths) - 1) > WIDTH and max(widths[:shrinking]) > LEAST_WIDTH:
        widths[widths.index(max(widths[:shrinking]))] -= 1
    lines = ("  ".join(_cell(cell, width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(line.rstrip() + "\n" for line in lines)


def cut(text: str, size: os.terminal_size) -> str:
    """Return as much of some lines as a terminal shows at once, with the number of those that it doesn't."""
    columns, rows = size.columns or WIDTH, size.lines or LEAST_ROWS
    lines = [line if len(line) <= columns else f"{line[: columns - 1]}…" for line in text.splitlines()]
    kept = max(LEAST_ROWS, rows - 1) - 1  # the cursor's own, and the one that says how many are left out
    if len(lines) > kept + 1:
        lines = [*lines[:kept], f"… and {len(lines) - kept} more"]
    return "".join(f"{line}\n" for line in lines)


def _cell(text: str, width: int) -> str:
    text = one_line(text)
    return text.ljust(width) if len(text) <= width else f"{text[: width - 1]}…"


def names(found: Sequence[Candidate]) -> str:
    """Return what RUN may be, a line each."""
    return "".join(f"{name}\n" for name in dict.fromkeys(name for run in found for name in (run.job, run.id)))


def _documents(found: Sequence[MachineRun]) -> list[dict[str, object]]:
    containers = [each for run in found for each in run.containers]
    return [as_json(each) for each in sorted(containers, key=_created, reverse=True)]


def _created(container: Started) -> float:
    return container.created


def _made(run: MachineRun) -> float:
    return run.created


def as_json(container: Started) -> dict[str, object]:
    """Return one run as plain values: bytes, seconds since the epoch, null where there is none yet."""
    return {
        "job": container.job,
        "target": container.target,
        "container": container.name,
        "node": container.node,
        "id": container.id,
        "run": container.run or None,
        "owner": container.owner or None,
        "attempt": container.attempt,
        "max_attempts": container.max_attempts,
        "state": container.status,
        "exit_code": container.exit_code,
        "health": container.health or None,
        "created": container.created,
        "started": container.started or None,
        "finished": container.finished or None,
        "shm_size": container.shm_size if container.private_shm else None,
    }


def _row(run: MachineRun, now: float) -> Row:
    end = run.deciding
    return (
        run.job,
        run.id,
        run.owner or "-",
        end.status,
        "-" if end.exit_code is None else str(end.exit_code),
        age(now - run.created),
        format_size(end.shm_size) if end.private_shm else end.ipc_mode,
        run.target,
    )


def age(seconds: float) -> str:
    """Return a time span in its one or two largest units: `42s`, `3m12s`, `2h5m`, `4d3h`."""
    total = max(0, int(seconds))
    minutes, secs = divmod(total, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{secs}s" if minutes else f"{secs}s"
