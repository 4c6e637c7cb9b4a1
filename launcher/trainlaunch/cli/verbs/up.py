"""`trainlaunch up`: start the job on this engine, host or cluster and follow it to its end."""

from __future__ import annotations

import argparse
import shlex

from trainlaunch.cli.arguments.job_arguments import (
    JOB_OUTPUT_ARGUMENT,
    KIND_ARGUMENT,
    job_arguments,
    plan_of,
    refuse_place_elsewhere,
    say_findings,
    say_unsized,
)
from trainlaunch.cli.arguments.run_argument import PLACE_ARGUMENTS, store_of_plan
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.arguments.waiting import MAX_DATA_WAIT, max_data_wait, tuning_advice
from trainlaunch.cli.output.run_document import beside_document, with_document
from trainlaunch.cli.output.run_output import Screen, teller
from trainlaunch.cli.output.streams import Streams
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render
from trainlaunch.rules import check_start
from trainlaunch.run.base.console import Console
from trainlaunch.run.base.slurm import name_of_task
from trainlaunch.run.base.store import Starting

USAGE = Usage(
    examples=(
        "trainlaunch up job.yaml",
        "trainlaunch up job.yaml --detach --set data_loader.batch_size=64",
        "trainlaunch up job.yaml --target kubernetes --namespace research",
    ),
    exit_codes=(
        "the job's own; 125 for anything before its first process or when no code exists, 75 this host can't run it "
        "now, 78 invalid configuration, 128+n when signal n ended it, 130 when Ctrl-C detached from a cluster"
    ),
    arguments=(
        *job_arguments(usual=True),
        KIND_ARGUMENT,
        argument("-d", "--detach", action="store_true", help="start it and return; print its name"),
        JOB_OUTPUT_ARGUMENT,
        *PLACE_ARGUMENTS,
        MAX_DATA_WAIT,
        argument(
            "--share-gpus",
            action="store_true",
            help="docker, compose, local: start on a GPU that a running job of trainlaunch has",
        ),
        argument(
            "--replace", action="store_true", help="kubernetes: delete the same job first where it is there already"
        ),
        argument(
            "--stop-on-interrupt",
            action="store_true",
            help="kubernetes: let Ctrl-C stop the job; it detaches otherwise",
        ),
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Check, start, follow, explain."""
    plan = plan_of(args)
    if not plan.target_record.starts_container:
        plan = plan._replace(name=name_of_task(plan.name))
    refuse_place_elsewhere(args, plan.target)
    most = max_data_wait(args, plan)
    if plan.job.patch is not None:
        _verify_patch(plan)
    say_findings(check_start(plan), streams)
    say_unsized(plan, streams)
    shown = beside_document(streams) if args.output == "json" else streams
    screen = Screen(shown)
    console = Console(screen.out, screen.err, screen.say, lambda _: "", screen.leave, lambda: screen.left)
    how = Starting(
        typed=shlex.join(["trainlaunch", *args.words]),
        detach=args.detach,
        share_gpus=args.share_gpus,
        replace=args.replace,
        stop_on_interrupt=args.stop_on_interrupt,
        max_data_wait=most,
    )
    with store_of_plan(args, plan) as store:
        tell = teller(store, plan.job.name, screen, shown, tuning_advice(plan))
        tell = with_document(tell, plan, streams) if shown is not streams else tell
        return store.start(plan, console, how, tell)


def _verify_patch(plan: LaunchPlan) -> None:
    """Raise JobFileRejected where the job's patch would change what the plan decided, as `render` does."""
    from trainlaunch.verify import verify

    verify(plan, render(plan))
