"""`trainlaunch ps`: the runs on this host, or in a namespace of a cluster."""

from __future__ import annotations

import argparse
import contextlib
import queue
import signal
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.job_arguments import CONTRACT_EXIT_CODES
from trainlaunch.cli.arguments.run_argument import (
    opened_store,
    owned_by,
    owner_argument,
    say_once,
    target_arguments,
    targets_of,
)
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.report import document
from trainlaunch.cli.output.streams import Row, Streams, Table
from trainlaunch.run.base.run_query import Run
from trainlaunch.units import age

if TYPE_CHECKING:
    from trainlaunch.run.base.store import RunRow

COLUMNS = ("JOB", "RUN", "OWNER", "STATE", "EXIT", "AGE", "SHM", "TARGET")
SHRINKING = 3  # of those the first may be cut, so that a line fits
WATCH_SECONDS = 2.0
USAGE = Usage(
    examples=("trainlaunch ps", "trainlaunch ps --running --owner any", "trainlaunch ps --output json"),
    exit_codes=CONTRACT_EXIT_CODES,
    arguments=(
        argument(
            "-o",
            "--output",
            choices=("text", "json", "names"),
            default="text",
            help="format of the result; names are for completion",
        ),
        argument("--running", action="store_true", help="only those that run now"),
        argument("--watch", action="store_true", help=f"again every {WATCH_SECONDS:.0f} s, until Ctrl-C"),
        owner_argument(default="those of all"),
        *target_arguments("all but clusters"),
    ),
)


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


def names(found: Sequence[Run]) -> str:
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
