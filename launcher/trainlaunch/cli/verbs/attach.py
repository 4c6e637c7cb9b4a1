"""`trainlaunch attach`: take a run up again, from its first line to its end."""

from __future__ import annotations

import argparse
import functools

from trainlaunch.cli.arguments.run_argument import RUN_ARGUMENTS, newest_run
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.run_output import Screen, follow_run
from trainlaunch.cli.output.streams import Streams
from trainlaunch.run.base.backend import ContainerInfo
from trainlaunch.run.base.console import not_kept
from trainlaunch.run.base.store import Following
from trainlaunch.sanitize import shown

USAGE = Usage(
    examples=("trainlaunch attach mnist", "trainlaunch attach mnist --stop-on-interrupt"),
    exit_codes=(
        "the job's own; 125 where none exists (no such run, engine or cluster, never started, removed "
        "meanwhile), 130 when Ctrl-C detached"
    ),
    arguments=(
        *RUN_ARGUMENTS,
        argument("--stop-on-interrupt", action="store_true", help="let Ctrl-C stop the job; it detaches otherwise"),
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Leave a supervisor with the run where none is, then show it to its end; Ctrl-C leaves the run alone."""
    with newest_run(args, streams) as (store, run):
        take_up = functools.partial(take_over, screen=Screen(streams))
        how = Following(take_up=take_up, stop_on_interrupt=args.stop_on_interrupt)
        return follow_run(store, run, how, streams)


def take_over(container: ContainerInfo, screen: Screen) -> None:
    """Say who supervises a run, or leave a supervisor with it; say what it goes without where that can't be."""
    from trainlaunch.run.base.private_files import UnusableState
    from trainlaunch.run.base.secret_values import secret_findings
    from trainlaunch.run.keeper import spawn_keeper
    from trainlaunch.run.run_lock import keeper_of
    from trainlaunch.run.run_record import RunRecord

    kept = RunRecord(container.run)
    for said in kept.said():
        for line in str(said).splitlines():
            screen.line(shown(line))
    keeper = keeper_of(container.run)
    if keeper is not None:
        screen.say(f"{keeper} supervises the run")
        return
    try:
        plan = kept.own_plan()
    except UnusableState as why:
        screen.say(f"{not_kept(container.max_attempts, None)}: {why}")
        return
    lacking = secret_findings(plan) if container.attempt < container.max_attempts else ()
    problem = "; ".join(each.message for each in lacking) or spawn_keeper(plan, container.run)
    if lacking:
        problem += "; export it, then attach again"
    if problem:
        screen.say(f"{not_kept(plan.job.max_attempts, plan.job.active_deadline)}: {problem}")
        return
    screen.say(f"{keeper_of(container.run) or 'a process of this host'} supervises the run from now on")
