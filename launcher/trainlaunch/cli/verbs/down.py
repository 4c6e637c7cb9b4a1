"""`trainlaunch down`: stop a run and remove all its containers, those that `probe` and `tune` left of a job too."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.run_argument import add_run_argument, chosen_for_removal, found_runs
from trainlaunch.cli.output.streams import Streams

if TYPE_CHECKING:
    from trainlaunch.run.base.backend import Backend
    from trainlaunch.run.machine_runs import MachineRun

EXAMPLES = ("trainlaunch down job.yaml", "trainlaunch down 3f9a2c11", "trainlaunch down mnist --all")
EXIT_CODES = (
    "0 removed, 1 a bad job file, 2 usage, or several runs or one of somebody else's, 3 no such run, engine or "
    "cluster, 70 a bug of ours, 130 interrupted"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_run_argument(parser)
    parser.add_argument("--all", action="store_true", help="all of your runs that RUN means, ended ones too")


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Stop within the grace period, then remove every container of the run with its anonymous volumes."""
    with found_runs(args, measuring=True) as (places, found):
        for each in chosen_for_removal(args, found):
            _remove(places.backend(each.target), each, streams)
    return 0


def _remove(backend: Backend, run: MachineRun, streams: Streams) -> None:
    from trainlaunch.run.base.at_once import at_once
    from trainlaunch.run.run_store import RunStore

    running = [each for each in run.containers if each.status == "running"]
    for container in running:
        streams.say(f"stopping {container.name}")
    # At once: the nodes of a job have one grace period, not one after the other.
    at_once(backend.stop, [each.id for each in running], most=len(running))
    for container in run.containers:
        backend.remove(container.id)
        RunStore(container.run).remove()
        streams.say(f"removed {container.name}")
