"""`trainlaunch shell`: a way into a job: a container like its own, or the one that runs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from trainlaunch.cli.common import say_findings
from trainlaunch.cli.run_argument import add_run_argument, found_runs, say_once
from trainlaunch.cli.streams import Streams
from trainlaunch.cli.target_options import job_file
from trainlaunch.errors import TargetUnavailable
from trainlaunch.exit_codes import exit_of_signal
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.targets import DOCKER, TARGETS

if TYPE_CHECKING:
    from trainlaunch.run.backend import Backend, Started
    from trainlaunch.run.docker.backend import DockerBackend

EXAMPLES = (
    "trainlaunch shell job.yaml",
    "trainlaunch shell job.yaml --target kubernetes -- df -h /dev/shm",
    "trainlaunch shell 3f9a2c11 -- py-spy dump --pid 7",
)
EXIT_CODES = (
    "the shell's or the command's own; 125 for anything before it, 78 and 75 from the preflight, 128+n when signal n "
    "ended it or trainlaunch"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments; main takes what stands after `--` for the command."""
    add_run_argument(parser)
    parser.add_argument(
        "command", nargs="*", metavar="CMD", help="after `--`: a command instead of a shell (bash, else sh)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="sets",
        metavar="FIELD=VALUE",
        help="a job file: override one field, a dotted path and a YAML value; repeatable",
    )


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Start a container like the job's, or enter one that runs; on this machine."""
    if job_file(args) is None:
        return until_signalled(lambda: _into_run(args, streams))
    plan = plan_for_shell(args, streams)
    return until_signalled(lambda: _of_its_own(plan, streams))


def plan_for_shell(args: argparse.Namespace, streams: Streams) -> LaunchPlan:
    """Return the job's plan with a shell, or the command, in the place of its own; its warnings are said.

    Raises JobFileRejected.
    """
    from trainlaunch.cli.common import job_of
    from trainlaunch.rules import check_plan, plan_job
    from trainlaunch.run.shell.commands import shell_plan

    plan = plan_job(job_of(args))
    say_findings(check_plan(plan), streams)
    return shell_plan(plan, args.command)


def until_signalled(enter: Callable[[], int]) -> int:
    """Return what `enter` does; a signal that ends this process first lets it take everything away."""
    from trainlaunch.run.shell.terminal import Gone, ending_signals

    try:
        with ending_signals():
            return enter()
    except Gone as gone:
        return exit_of_signal(gone.number)


def _of_its_own(plan: LaunchPlan, streams: Streams) -> int:
    from trainlaunch.run.shell.commands import new_token

    token = new_token()
    if not plan.target_record.starts_container:
        from trainlaunch.run.local.shell import run_shell

        return run_shell(plan, token, say_once)
    from trainlaunch.run.backends import docker_backend
    from trainlaunch.run.docker.shell import opened, own_container
    from trainlaunch.run.shell.commands import planned_argv
    from trainlaunch.run.shell.terminal import join

    plan = _as_one_container(plan, streams)
    backend = docker_backend(say_once)
    try:
        with own_container(backend, plan, token, streams.say) as container:
            term = kind_of_terminal()
            with opened(backend.engine, container, planned_argv(plan), token, term=term) as command:
                return join(command, terminal=term is not None)
    finally:
        backend.close()


def _as_one_container(plan: LaunchPlan, streams: Streams) -> LaunchPlan:
    """Return the plan of target compose as target docker's: the same container, without what is of Compose alone."""
    if plan.target == DOCKER.name:
        return plan
    patch = "" if plan.job.patch is None else f" and patches.{plan.target}"
    streams.say(f"trainlaunch: a shell's container is made without the job's network{patch}")
    return plan._replace(target=DOCKER.name, job=plan.job._replace(target=DOCKER.name, patch=None))


def kind_of_terminal() -> str | None:
    """Return the kind of this process's terminal, None without one."""
    from trainlaunch.run.shell.terminal import has_terminal

    return os.environ.get("TERM") or "xterm" if has_terminal() else None


def _into_run(args: argparse.Namespace, streams: Streams) -> int:
    from trainlaunch.run.shell.commands import new_token, running_argv
    from trainlaunch.run.wording import nothing_runs

    with found_runs(args) as (places, found):
        running = [each for each in found if each.running and (args.owner or each.is_mine)]
        if not running:
            raise TargetUnavailable([nothing_runs(args.job)])
        entered = running[0]
        container = next(each for each in entered.newest if each.status == "running")
        if len(running) > 1 or len(entered.newest) > 1:
            streams.say(f"trainlaunch: {container.noun} {container.name} of run {entered.id}, on {entered.target}")
        argv, token = running_argv(args.command), new_token()
        if not TARGETS[entered.target].starts_container:
            from trainlaunch.run.local.shell import in_folder_of

            return in_folder_of(container.pid, argv, token)
        return _enter(places.backend(entered.target), container, argv, token)


def _enter(backend: Backend, container: Started, argv: tuple[str, ...], token: str) -> int:
    from trainlaunch.run.docker.shell import opened
    from trainlaunch.run.shell.terminal import join

    term, on_engine = kind_of_terminal(), cast("DockerBackend", backend)  # as each that starts containers here
    with opened(on_engine.engine, container.id, argv, token, term=term) as command:
        return join(command, terminal=term is not None)
