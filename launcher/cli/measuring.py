"""What the runs of `probe` and `tune` have other than the job."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from launcher.plan.launch_plan import LaunchPlan


def measuring_fields(args: argparse.Namespace, plan: LaunchPlan, verb: str, seconds: int) -> tuple[str, ...]:
    """Return, as --set takes them, what a run has that measures for so many seconds; --name names it."""
    from launcher.measure.planned import measuring_name, measuring_sets
    from launcher.run.local.checks import host_memory

    name = args.name or measuring_name(plan.name, verb)
    return measuring_sets(plan, name, seconds=seconds, host_memory=host_memory())
