"""What `run` and `up` share about the time that a run waits for data: the option, and what to do about it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.verb_table import argument
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import LaunchError, UsageError
from trainlaunch.plan.instrumentation import forbids_noting
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.lock_overrides import fresh_tune, measuring_command
from trainlaunch.targets import target_record

if TYPE_CHECKING:
    from trainlaunch.init.command_plan import CommandPlan
    from trainlaunch.run.base.store import Followed

MAX_DATA_WAIT = argument(
    "--max-data-wait",
    metavar="PERCENT",
    help="end a run that ended well with 1 where it waited for data a larger share of its time, like 10%%",
)
SAID_ABOVE = 0.1  # the share from which something is to be done
STARTS = 0.5  # the share of the first batches from which starting workers is what takes the time


def max_data_wait(args: argparse.Namespace, plan: LaunchPlan) -> float | None:
    """Return the share that --max-data-wait sets, None without it. Raises UsageError where it can't be judged."""
    typed = args.max_data_wait
    if typed is None:
        return None
    found = re.fullmatch(r"(\d{1,3}(?:\.\d+)?)\s*%", typed)
    if found is None or float(found[1]) > 100:
        raise _refused(f"--max-data-wait is {typed}", "write a share of the run's time, like 10%")
    if args.detach:
        raise _refused("--max-data-wait judges the end, and --detach doesn't wait for it", "leave out --detach")
    if field := forbids_noting(plan.job):
        raise _refused(f"--max-data-wait needs what {field} forbids", f"delete {field}")
    if not target_record(plan.target).on_this_machine:
        raise _refused(f"--max-data-wait is for runs on this host, and the target is {plan.target}", "leave it out")
    return float(found[1]) / 100


def _refused(message: str, fix: str) -> UsageError:
    return UsageError([Diagnostic("TL118", message, fix)])


def _is_much(followed: Followed) -> bool:
    """Whether a run that ended well waited so much that the number of workers may be wrong."""
    wait = followed.data_wait
    if wait is None or followed.exit_code or followed.seconds <= 0:
        return False
    first = sum(each.first for each in wait.longest)
    return wait.waited > SAID_ABOVE * followed.seconds and first < STARTS * wait.waited


def tuning_advice(plan: LaunchPlan) -> Callable[[Followed], str]:
    """Return what says how a job's loaders are made faster; nothing where a run waited little."""

    def advise(followed: Followed) -> str:
        from trainlaunch.rules.sources.deciding_workers import deciding_workers  # which reads the script

        if not _is_much(followed) or fresh_tune(plan.job) is not None:
            return ""
        first = deciding_workers(plan.job).take_planned()
        if not first and not plan.auto_workers:
            first = "set data_loader.num_workers to auto"
        measure = measuring_command("tune", plan.job, plan.target)
        return f"to wait less: {first}, then `{measure}`" if first else f"`{measure}` finds what waits least"

    return advise


def workers_advice(
    planned: CommandPlan, with_auto: Callable[[], CommandPlan], followed: Followed, asked: str | None
) -> str:
    """Return that --workers auto gives a command's loaders more workers; empty where it doesn't, or is there."""
    numbers = [each.number for each in planned.decisions]
    if asked is not None or not numbers or None in numbers or not _is_much(followed):
        return ""
    try:
        workers = with_auto().plan.num_workers.value
    except (LaunchError, OSError):  # nothing in the script takes it, or the run has changed it, or its folder
        return ""
    had = max(each or 0 for each in numbers)
    return f"`--workers auto` gives its loaders {workers} workers instead of {had}" if workers > had else ""
