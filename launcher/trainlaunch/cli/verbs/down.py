"""`trainlaunch down`: stop a run and remove all its containers, those that `probe` and `tune` left of a job too."""

from __future__ import annotations

import argparse

from trainlaunch.cli.arguments.run_argument import RUN_ARGUMENTS, chosen_for_removal, found_runs
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.streams import Streams

USAGE = Usage(
    examples=("trainlaunch down job.yaml", "trainlaunch down 3f9a2c11", "trainlaunch down mnist --all"),
    exit_codes=(
        "0 removed, 1 a bad job file, 2 usage, or several runs or one of somebody else's, 3 no such run, "
        "engine or cluster, 70 a bug of ours, 130 interrupted"
    ),
    arguments=(
        *RUN_ARGUMENTS,
        argument("--all", action="store_true", help="all of your runs that RUN means, ended ones too"),
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Remove the run that is meant with all that it made, or what runs that are gone have left."""
    with found_runs(args, measuring=True) as (store, asked, known, found):
        if found:
            store.remove(chosen_for_removal(args, found), streams.say)
        else:
            store.remove_left(asked, known, args.owner, streams.say)
    return 0
