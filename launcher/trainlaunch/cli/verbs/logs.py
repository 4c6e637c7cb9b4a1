"""`trainlaunch logs`: what a job's newest run printed."""

from __future__ import annotations

import argparse

from trainlaunch.cli.arguments.log_options import add_log_arguments, attempt, part_of
from trainlaunch.cli.arguments.run_argument import add_run_argument, newest_run, say_once
from trainlaunch.cli.output.run_output import follow_run
from trainlaunch.cli.output.streams import Streams
from trainlaunch.cli.output.terminal import write_bytes
from trainlaunch.run.base.backend import Chunk
from trainlaunch.run.base.store import Following

EXAMPLES = (
    "trainlaunch logs job.yaml",
    "trainlaunch logs -f mnist --tail 20",
    "trainlaunch logs 3f9a2c11 --since 10m --timestamps",
)
EXIT_CODES = (
    "0 printed, 1 a bad job file, 2 usage, 3 no such run, engine or cluster; with --follow the job's own code, and 125 "
    "where none exists"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_run_argument(parser)
    add_log_arguments(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-f", "--follow", action="store_true", help="follow it to the end; Ctrl-C leaves the job alone")
    which.add_argument("--attempt", metavar="N", type=attempt, help="that attempt of the run (default: its last)")


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
