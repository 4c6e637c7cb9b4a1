"""`trainlaunch wait`: block until a job's run has ended, and end with its exit code."""

from __future__ import annotations

import argparse

from launcher.cli.runs import add_run_argument, backend_of, code_of, job_name, run_target, runs_of
from launcher.cli.streams import Streams

EXAMPLES = ("trainlaunch wait job.yaml", "trainlaunch up -d job.yaml && trainlaunch wait job.yaml")
EXIT_CODES = "the job's own; 125 where none exists (no such run, no engine, never started, removed meanwhile)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_run_argument(parser)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Wait for the newest container of the job; attempts that an `up` adds later are waited for by that `up`."""
    with backend_of(run_target(args)) as backend:
        container = runs_of(backend, job_name(args.job, policy=args.policy))[0]
        if container.status == "running":
            streams.say(f"waiting for job {container.job} ({container.noun} {container.name}) to end")
        return code_of(backend, container, streams.say)
