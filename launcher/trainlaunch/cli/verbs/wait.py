"""`trainlaunch wait`: block until a job's run has ended, and end with its exit code."""

from __future__ import annotations

import argparse

from trainlaunch.cli.arguments.job_arguments import OUTPUT_ARGUMENT
from trainlaunch.cli.arguments.run_argument import RUN_ARGUMENTS, newest_run
from trainlaunch.cli.arguments.verb_table import Usage
from trainlaunch.cli.output.report import document
from trainlaunch.cli.output.run_output import follow_run
from trainlaunch.cli.output.streams import Streams
from trainlaunch.run.base.store import ENDED, Following

USAGE = Usage(
    examples=("trainlaunch wait job.yaml", "trainlaunch up -d job.yaml && trainlaunch wait job.yaml"),
    exit_codes=(
        "the job's own; 125 where none exists (no such run, engine or cluster, never started, removed meanwhile)"
    ),
    arguments=(
        *RUN_ARGUMENTS,
        OUTPUT_ARGUMENT,
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Wait for the newest run of the job, attempts that are added included, and say why it ended."""
    with newest_run(args, streams) as (store, run):
        code = follow_run(store, run, Following(part=None), streams)
        if args.output == "json":
            now = next((each for each in store.runs() if (each.job, each.id) == (run.job, run.id)), None)
            status = None if now is None else store.report(now, streams.say).status
            if status is not None and status.state in ENDED:  # else it was left alone, or removed meanwhile
                streams.result(document(status.document()))
    return code
