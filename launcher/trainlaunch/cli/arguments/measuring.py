"""What `probe` and `tune` share: their arguments, and what their runs have other than the job."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.job_arguments import add_job_arguments, add_kind_argument, add_output_argument
from trainlaunch.cli.arguments.target_options import add_place_arguments

if TYPE_CHECKING:
    from trainlaunch.plan.launch_plan import LaunchPlan


def add_measuring_arguments(parser: argparse.ArgumentParser, what_runs: str) -> argparse._ArgumentGroup:
    """Add the arguments of both verbs, and return the group that tells `what_runs`, for a verb's own."""
    add_job_arguments(parser)
    add_kind_argument(parser)
    add_output_argument(parser)
    add_place_arguments(parser)
    asked = parser.add_argument_group("what runs", what_runs)
    asked.add_argument(
        "--write", action="store_true", help="keep the result in the lock beside the job file, where plan and up use it"
    )
    return asked


def measuring_fields(args: argparse.Namespace, plan: LaunchPlan, verb: str, seconds: int) -> tuple[str, ...]:
    """Return, as --set takes them, what a run has that measures for so many seconds; --name names it."""
    from trainlaunch.measure.measuring_fields import measuring_name, measuring_sets
    from trainlaunch.run.local.checks import host_memory

    name = args.name or measuring_name(plan.name, verb)
    return measuring_sets(plan, name, seconds=seconds, host_memory=host_memory())
