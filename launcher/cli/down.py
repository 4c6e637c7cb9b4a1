"""`trainlaunch down`: stop a job's run and remove all its containers."""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor

from launcher.cli.runs import add_run_argument, backend_of, job_name, run_target, runs_of
from launcher.cli.streams import Streams

EXAMPLES = ("trainlaunch down job.yaml", "trainlaunch down mnist")
EXIT_CODES = "0 removed, 1 a bad job file, 2 usage, 3 no such run, engine or cluster, 70 a bug of ours, 130 interrupted"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_run_argument(parser)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Stop within the grace period, then remove every container of the job with its anonymous volumes."""
    from launcher.run.kept import Kept

    with backend_of(run_target(args)) as backend:
        containers = runs_of(backend, job_name(args.job, policy=args.policy))
        running = [each for each in containers if each.status == "running"]
        for container in running:
            streams.say(f"stopping {container.name}")
        # At once: the nodes of a job have one grace period, not one after the other.
        with ThreadPoolExecutor(max(1, len(running))) as pool:
            for _ in pool.map(backend.stop, (each.id for each in running)):
                pass  # raises what a stop raised
        for container in containers:
            backend.remove(container.id)
            Kept(container.run).remove()
            streams.say(f"removed {container.name}")
    return 0
