"""`trainlaunch logs`: what a job's newest run printed."""

from __future__ import annotations

import argparse

from launcher.cli.runs import add_run_argument, backend_of, code_of, job_name, run_target, runs_of
from launcher.cli.screen import write_bytes
from launcher.cli.streams import Streams

EXAMPLES = ("trainlaunch logs job.yaml", "trainlaunch logs -f mnist")
EXIT_CODES = (
    "0 printed, 1 a bad job file, 2 usage, 3 no such run or no engine; with --follow the job's own code, and 125 where "
    "none exists"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_run_argument(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="follow it to the end; Ctrl-C leaves the job alone")


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Print both streams of the newest container, from the first byte."""
    with backend_of(run_target(args)) as backend:
        container = runs_of(backend, job_name(args.job, policy=args.policy))[0]
        for chunk in backend.logs(container.id, follow=args.follow):
            with streams.writable():
                write_bytes(streams.err if chunk.stderr else streams.out, chunk.data)
        return code_of(backend, container, streams.say) if args.follow else 0
