"""`trainlaunch shell`: a way into a job: a container like its own, or the one that runs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from trainlaunch.cli.arguments.job_arguments import job_of, say_findings
from trainlaunch.cli.arguments.run_argument import (
    RUN_ARGUMENTS,
    allowed_runs,
    job_file,
    named_target,
    say_once,
    store_of_plan,
)
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.streams import Streams
from trainlaunch.errors import TargetUnavailable
from trainlaunch.exit_codes import exit_of_signal
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.run_query import nothing_runs

USAGE = Usage(
    examples=(
        "trainlaunch shell job.yaml",
        "trainlaunch shell job.yaml --target kubernetes -- df -h /dev/shm",
        "trainlaunch shell 3f9a2c11 -- py-spy dump --pid 7",
    ),
    exit_codes=(
        "the shell's or the command's own; 125 for anything before it, 75 this host can't run it now, 78 invalid "
        "configuration, 128+n when signal n ended it or trainlaunch"
    ),
    arguments=(
        *RUN_ARGUMENTS,
        argument("command", nargs="*", metavar="CMD", help="after `--`: a command instead of a shell (bash, else sh)"),
        argument(
            "--set",
            action="append",
            default=[],
            dest="sets",
            metavar="FIELD=VALUE",
            help="a job file: override one field, a dotted path and a YAML value; repeatable",
        ),
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Start a container like the job's, or enter one that runs."""
    if job_file(args) is None:
        return _until_signalled(lambda: _into_run(args))
    args.target = named_target(args)
    plan = _plan_for_shell(args, streams)
    with store_of_plan(args, plan) as store:
        return _until_signalled(lambda: store.own_shell(plan, _kind_of_terminal(), say_once))


def _plan_for_shell(args: argparse.Namespace, streams: Streams) -> LaunchPlan:
    """Return the job's plan with a shell, or the command, in the place of its own; its warnings are said.

    Raises JobFileRejected.
    """
    from trainlaunch.rules import check_plan, plan_job
    from trainlaunch.run.base.container_shell import shell_plan

    plan = plan_job(job_of(args))
    say_findings(check_plan(plan), streams)
    return shell_plan(plan, args.command)


def _until_signalled(enter: Callable[[], int]) -> int:
    """Return what `enter` does; a signal that ends this process first lets it take everything away."""
    from trainlaunch.run.base.container_shell import Gone, ending_signals

    try:
        with ending_signals():
            return enter()
    except Gone as gone:
        return exit_of_signal(gone.number)


def _kind_of_terminal() -> str | None:
    """Return the kind of this process's terminal, None without one."""
    from trainlaunch.run.base.container_shell import has_terminal

    return os.environ.get("TERM") or "xterm" if has_terminal() else None


def _into_run(args: argparse.Namespace) -> int:
    with allowed_runs(args) as (store, runs, _):
        code = store.enter(runs, args.command, _kind_of_terminal(), say_once)
        if code is None:
            raise TargetUnavailable([nothing_runs(args.job)])
        return code
