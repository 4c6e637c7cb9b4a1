"""Parts of a repository that a job mounts, as a text in that repository names them."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.job.host_paths import below_repository
from trainlaunch.job.spec import Mount
from trainlaunch.plan.launch_plan import LaunchPlan


class Checkout(NamedTuple):
    """A folder of the repository that a container sees: its path from the root, `.` for all of it."""

    path: str
    target: str
    read_only: bool


def checkouts(plan: LaunchPlan) -> tuple[Checkout, ...]:
    """Return the binds whose source is a part of the repository, in the job's order."""
    return tuple(
        Checkout(below_repository(plan.job.path, each.source or ".") or ".", each.target, each.read_only)
        for each in plan.job.mounts
        if _is_checkout(each)
    )


def machine_mounts(plan: LaunchPlan) -> tuple[Mount, ...]:
    """Return the other mounts that are none in memory: paths of the machine, volumes, scratch folders."""
    return tuple(each for each in plan.job.mounts if each.type != "tmpfs" and not _is_checkout(each))


def _is_checkout(mount: Mount) -> bool:
    return mount.type == "bind" and not (mount.source or ".").startswith("/")
