"""`trainlaunch logs`: what a job's newest run printed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from launcher.cli.runs import add_run_argument, backend_of, code_of_all, job_name, newest_containers, run_target
from launcher.cli.streams import Streams
from launcher.cli.terminal import write_bytes
from launcher.run.backend import Backend, Chunk, Started

EXAMPLES = ("trainlaunch logs job.yaml", "trainlaunch logs -f mnist")
EXIT_CODES = (
    "0 printed, 1 a bad job file, 2 usage, 3 no such run, engine or cluster; with --follow the job's own code, and 125 "
    "where none exists"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_run_argument(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="follow it to the end; Ctrl-C leaves the job alone")


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Print both streams of the newest run, from the first byte; of several nodes with the node's number."""
    with backend_of(run_target(args)) as backend:
        containers = newest_containers(backend, job_name(args.job, policy=args.policy))
        for chunk in _printed(backend, containers, follow=args.follow):
            with streams.writable():
                write_bytes(streams.err if chunk.stderr else streams.out, chunk.data)
        return code_of_all(backend, containers, streams.say) if args.follow else 0


def _printed(backend: Backend, containers: tuple[Started, ...], *, follow: bool) -> Iterator[Chunk]:
    """Yield what to print; without `follow` one node after the other."""
    logs = [backend.logs(each.id, follow=follow) for each in containers]
    if len(logs) == 1:
        yield from logs[0]
        return
    from launcher.run.multi_node import Prefixed, merged

    numbered = (replace(chunk, node=node) for node, log in enumerate(logs) for chunk in log)
    prefixed = Prefixed()
    for chunk in merged(logs) if follow else numbered:
        yield replace(chunk, data=prefixed.take(chunk))
    yield from prefixed.rest()
