"""`trainlaunch wait`: block until a job's run has ended, and end with its exit code."""

from __future__ import annotations

import argparse

from trainlaunch.cli.arguments.run_argument import add_run_argument, newest_run
from trainlaunch.cli.output.streams import Streams
from trainlaunch.cli.runs.run_end import follow_to_end, say_end

EXAMPLES = ("trainlaunch wait job.yaml", "trainlaunch up -d job.yaml && trainlaunch wait job.yaml")
EXIT_CODES = "the job's own; 125 where none exists (no such run, engine or cluster, never started, removed meanwhile)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_run_argument(parser)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Wait for the newest run of the job, the attempts that its keeper adds included, and say why it ended."""
    with newest_run(args, streams) as (backend, found):
        containers = found.newest
        running = [each for each in containers if each.status == "running"]
        if running:
            names = ", ".join(each.name for each in running)
            streams.say(f"waiting for job {running[0].job} ({running[0].noun} {names}) to end")
        code, containers = follow_to_end(backend, containers, None, streams.say)
        say_end(backend, containers, streams, streams.say)
        return code
