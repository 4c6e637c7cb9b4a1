"""Which runs note how long they wait for data, and how much of it a run may wait that ends well."""

from __future__ import annotations

from trainlaunch.plan.instrumentation import DATA_WAIT, PAGES, forbids_noting
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.console import Outcome
from trainlaunch.units import KIB

ROOM = PAGES * 64 * KIB  # of /dev/shm beside what the job needs, for the files of the part
EXIT_WAITED = 1


def observed(plan: LaunchPlan) -> LaunchPlan:
    """Return a plan whose processes note how long they wait for data; as it is where it must not, or has no room."""
    room = plan.shm.size.value - plan.shm.need >= ROOM or not plan.target_record.private_shm
    if forbids_noting(plan.job) or plan.measures or DATA_WAIT in plan.inside.parts or not room:
        return plan
    return plan._replace(inside=plan.inside.with_part(DATA_WAIT))


def judged_by_wait(outcome: Outcome, most: float | None) -> tuple[int, str]:
    """Return the exit code of a run that may wait for data so large a share of its time, and why, or an empty text.

    What nobody measured is unknown, and fails no run.
    """
    if most is None or outcome.exit_code:
        return outcome.exit_code, ""
    option = f"--max-data-wait {100 * most:g}%"
    if outcome.data_wait is None or not outcome.data_wait.ranks or outcome.seconds <= 0:
        return 0, f"{option} judges nothing: no wait for a batch was noted"
    share = outcome.data_wait.waited / outcome.seconds
    if share <= most:
        return 0, ""
    return EXIT_WAITED, f"{option}: it waited {100 * share:.1f} % of its time, so it ends with {EXIT_WAITED}"
