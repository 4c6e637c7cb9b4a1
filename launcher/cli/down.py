"""`trainlaunch down`: stop a job's run and remove all its containers."""

from __future__ import annotations

import argparse

from launcher.cli.runs import add_run_argument, backend_of, job_name, run_target, runs_of
from launcher.cli.streams import Streams

EXAMPLES = ("trainlaunch down job.yaml", "trainlaunch down mnist")
EXIT_CODES = "0 removed, 1 a bad job file, 2 usage, 3 no such run or no engine, 70 a bug of ours, 130 interrupted"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_run_argument(parser)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Stop within the grace period, then remove every container of the job with its anonymous volumes."""
    with backend_of(run_target(args)) as backend:
        containers = runs_of(backend, job_name(args.job, policy=args.policy))
        for container in containers:
            if container.status == "running":
                streams.say(f"stopping {container.name}")
                backend.stop(container.id)
        for container in containers:
            backend.remove(container.id)
            streams.say(f"removed {container.name}")
    return 0
