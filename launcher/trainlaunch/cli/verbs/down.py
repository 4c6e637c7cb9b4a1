"""`trainlaunch down`: stop a run and remove all its containers, those that `probe` and `tune` left of a job too."""

from __future__ import annotations

import argparse

from trainlaunch.cli.arguments.run_argument import (
    RUN_ARGUMENTS,
    chosen_for_removal,
    found_runs,
    named_target,
    opened_store,
    owned_by,
)
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.streams import Streams
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable, UsageError
from trainlaunch.run.base.run_query import listing
from trainlaunch.targets import ON_THIS_MACHINE
from trainlaunch.units import counted

USAGE = Usage(
    examples=(
        "trainlaunch down job.yaml",
        "trainlaunch down 3f9a2c11",
        "trainlaunch down mnist --all",
        "trainlaunch down --all",
    ),
    exit_codes=(
        "0 removed, 1 a bad job file, 2 usage, or several runs or one of somebody else's, 3 no such run, "
        "engine or cluster, 70 an internal error, 130 interrupted"
    ),
    arguments=(
        argument(*RUN_ARGUMENTS[0].names, nargs="?", **RUN_ARGUMENTS[0].options),
        *RUN_ARGUMENTS[1:],
        argument("--all", action="store_true", help="all of your runs that RUN means, ended ones too"),
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Remove the run that is meant with all that it made, or what runs that are gone have left."""
    if args.job is None:
        return _remove_all(args, streams)
    with found_runs(args, measuring=True) as (store, asked, known, found):
        if found:
            store.remove(chosen_for_removal(args, found), streams.say)
        else:
            store.remove_left(asked, known, args.owner, streams.say)
    return 0


def _remove_all(args: argparse.Namespace, streams: Streams) -> int:
    """Remove all runs of the caller's, or of --owner, after a list of them. Raises UsageError without --all."""
    if not args.all:
        message, fix = "`down` needs a RUN", "name one as `trainlaunch ps` lists them, or add --all for all of yours"
        raise UsageError([Diagnostic("TL118", message, fix)])
    named = named_target(args)
    with opened_store(args, tuple(reversed(ON_THIS_MACHINE)) if named is None else (named,)) as store:
        runs = [each for each in owned_by(args.owner, store.runs()) if args.owner or each.is_mine]
        if not runs:
            for line in store.left_out(found=False):
                streams.say(line)
            fix = "`trainlaunch ps` lists those of others; a cluster is asked with --target kubernetes"
            raise TargetUnavailable([Diagnostic("TL510", f"{store.place} has no run of {args.owner or 'yours'}", fix)])
        streams.say(f"removing {counted(len(runs), 'run')}: {listing(runs, most=len(runs))}")
        store.remove(runs, streams.say)
    return 0
