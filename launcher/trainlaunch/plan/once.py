"""What follows from a plan and is asked for again and again: a text's writer, its reader and its name want the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from trainlaunch.plan.launch_plan import LaunchPlan

Made = TypeVar("Made")


def once_for_plan(work: Callable[[LaunchPlan], Made]) -> Callable[[LaunchPlan], Made]:
    """Return `work`, done once for a plan until another one is asked about.

    For functions of the plan alone, whose result nobody changes: a plan is never changed either.
    """
    last: tuple[LaunchPlan, Made] | None = None

    @functools.wraps(work)
    def once(plan: LaunchPlan) -> Made:
        nonlocal last
        known = last
        if known is None or known[0] is not plan:
            known = last = plan, work(plan)
        return known[1]

    return once
