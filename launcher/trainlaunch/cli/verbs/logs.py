"""`trainlaunch logs`: what a job's newest run printed, or the part of it that users of docker and kubectl ask for."""

from __future__ import annotations

import argparse
import re
import time

from trainlaunch.cli.arguments.run_argument import RUN_ARGUMENTS, newest_run, say_once
from trainlaunch.cli.arguments.verb_table import ArgumentGroup, Usage, argument
from trainlaunch.cli.output.run_output import follow_run, write_bytes
from trainlaunch.cli.output.streams import Streams
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError
from trainlaunch.run.base.backend import Chunk
from trainlaunch.run.base.clock import SECOND, nanoseconds
from trainlaunch.run.base.log_position import LogPart
from trainlaunch.run.base.store import Following

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:d|h|ms|us|µs|ns|m|s))+")
_PART = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)(d|h|ms|us|µs|ns|m|s)")
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_EPOCH = re.compile(r"\d{1,11}(?:\.\d{1,9})?")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)([T ]\d\d:\d\d(?::\d\d)?)?(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?")
MAX_LINES = 2**31 - 1


def part_of(args: argparse.Namespace) -> LogPart:
    """Return the part that the arguments ask for; a duration counts back from now. Raises UsageError (TL118)."""
    return LogPart(_tail(args.tail), None if args.since is None else _since(args.since), args.timestamps)


def attempt(text: str) -> int:
    """Read --attempt for argparse."""
    if not re.fullmatch(r"[1-9]\d{0,8}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of an attempt; the first is 1")
    return int(text)


def _tail(text: str) -> int | None:
    if text in {"all", "-1"}:
        return None
    if not re.fullmatch(r"\d{1,10}", text, re.ASCII):
        raise _unreadable("--tail", text, "a number of lines", "write --tail 100, or leave it out for all")
    return min(int(text), MAX_LINES)


def _since(text: str) -> int:
    if _DURATION.fullmatch(text):
        ago = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
        return max(0, time.time_ns() - int(ago * SECOND))
    if _EPOCH.fullmatch(text):
        whole, _, fraction = text.partition(".")
        return int(whole) * SECOND + int(fraction.ljust(9, "0"))
    if found := _MOMENT.fullmatch(text):
        day, clock, fraction, zone = found.groups()
        try:  # one without a zone is this host's own time, as `docker logs` reads it
            return max(0, nanoseconds(f"{day}{clock or 'T00:00'}{fraction or ''}{zone or ''}"))
        except (ValueError, OverflowError):
            pass  # like a 13th month
    raise _unreadable("--since", text, "a duration or a time", "write --since 10m, or --since 2026-01-31T08:00:00Z")


def _unreadable(option: str, text: str, what: str, fix: str) -> UsageError:
    return UsageError([Diagnostic("TL118", f"{option} {text!r} is not {what}", fix)])


PART_ARGUMENTS = (
    argument("--tail", metavar="N", default="all", help="the last N lines of each node (default: all)"),
    argument("--since", metavar="T", help="lines since then, as in 10m, 1h30m or 2026-01-31T08:00:00Z"),
    argument("--timestamps", action="store_true", help="put the time before each line"),
)
USAGE = Usage(
    examples=(
        "trainlaunch logs job.yaml",
        "trainlaunch logs -f mnist --tail 20",
        "trainlaunch logs 3f9a2c11 --since 10m --timestamps",
    ),
    exit_codes=(
        "0 printed, 1 a bad job file, 2 usage, 3 no such run, engine or cluster; with --follow the job's own "
        "code, and 125 where none exists"
    ),
    arguments=(
        *RUN_ARGUMENTS,
        *PART_ARGUMENTS,
        ArgumentGroup(
            (
                argument(
                    "-f", "--follow", action="store_true", help="follow it to the end; Ctrl-C leaves the job alone"
                ),
                argument("--attempt", metavar="N", type=attempt, help="that attempt of the run (default: its last)"),
            )
        ),
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Print both streams of the newest run, from the first byte; of several nodes with the node's number."""
    part = part_of(args)

    def show(chunk: Chunk) -> None:
        with streams.writable(stderr=chunk.stderr):
            write_bytes(streams.err if chunk.stderr else streams.out, chunk.data)

    with newest_run(args, streams) as (store, run):
        if args.follow:
            return follow_run(store, run, Following(part), streams, show)
        store.print_log(run, part, args.attempt, show, say_once)
    return 0
