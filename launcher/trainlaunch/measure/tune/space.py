"""What may be tried: numbers of workers and prefetch factors whose batches fit /dev/shm and the memory limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from trainlaunch.inside.tune.task import Setting, Space
from trainlaunch.plan.cpu_budget import whole_cpus
from trainlaunch.plan.launch_plan import LaunchPlan

LADDER = (0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128)
PREFETCH = (4, 8)

# The plan of the job with a setting; None where the job can't have it.
PlanWith = Callable[[Setting], LaunchPlan | None]


class Limited(NamedTuple):
    """A space, and what ends it: max_workers, shm_size or memory."""

    space: Space
    ended_by: str


def limited_space(as_it_is: LaunchPlan, plan_with: PlanWith) -> Limited:
    """Return what a job may try; `as_it_is` is its plan without a setting."""
    job = as_it_is.job
    ceiling = job.ceiling("num_workers")
    most = min(job.data_loader.max_workers, ceiling.value if ceiling else job.data_loader.max_workers)
    prefetch = job.data_loader.loaders[0].prefetch_factor
    wanted = [*(each for each in LADDER if each < most), most]
    plans = {each: _fitting(plan_with, Setting(each, prefetch)) for each in wanted}
    fitting = [each for each in wanted if plans[each] is not None]
    ended_by = "max_workers" if fitting and fitting[-1] == most else _ended_by(as_it_is)
    more = []
    for factor in PREFETCH:
        held = [each for each in fitting if each and _fitting(plan_with, Setting(each, factor)) is not None]
        if factor > prefetch and held:
            more.append((factor, held[-1]))
    cpus = whole_cpus(job) or most
    space = Space(tuple(fitting), tuple(more), bool(job.resources.gpus), max(1, cpus // as_it_is.ranks.value))
    return Limited(space, ended_by)


def threads_by_workers(space: Space, plan_with: PlanWith) -> dict[int, int]:
    """Return torch's threads beside each number of workers, as the plan has them; empty where the job sets its own."""
    found = {}
    for workers in space.workers:
        plan = plan_with(Setting(workers))
        threads = dict(plan.threads).get("OMP_NUM_THREADS") if plan else None
        if threads is None or threads.derivation == "stated":
            return {}
        found[workers] = threads.value
    return found


def _fitting(plan_with: PlanWith, setting: Setting) -> LaunchPlan | None:
    """Return the plan of a setting that fits in every epoch, with the working set of its processes."""
    plan = plan_with(setting)
    if plan is None:
        return None
    shm, limit = plan.shm, plan.memory.limit
    held = limit is None or shm.need + plan.memory.working_set.value <= limit
    return plan if held and shm.multi_epoch <= max(shm.size.value, shm.need) else None


def _ended_by(plan: LaunchPlan) -> str:
    return "shm_size" if plan.job.shm_size is not None else "memory"
