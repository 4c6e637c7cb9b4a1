"""From what a job asks for to what is decided: the LaunchPlan. What is wrong with one is said in trainlaunch.rules."""

from __future__ import annotations

from trainlaunch.job.spec import JobSpec
from trainlaunch.plan.instrumentation import instrumentation_of
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.lock_overrides import with_measured
from trainlaunch.plan.memory_and_files import open_files, planned_memory
from trainlaunch.plan.ranks import argv_of, ranks_of
from trainlaunch.plan.shared_memory import WorkerNumbers, shared_memory
from trainlaunch.plan.workers_and_threads import planned_threads, planned_workers

__all__ = ["make_plan"]


def make_plan(job: JobSpec, *, name: str | None = None) -> LaunchPlan:
    """Return the plan of `job`, judged by nobody yet; `name` fixes its name."""
    job = with_measured(job)
    ranks = ranks_of(job)
    workers = planned_workers(job, ranks.value)
    shm = shared_memory(job, ranks.value, WorkerNumbers(workers.value))
    argv = argv_of(job, ranks.value)
    return LaunchPlan(
        job=job,
        target=job.target,
        name=name or job.name,
        name_fixed=name is not None,
        gpus=job.resources.gpus,
        ranks=ranks,
        num_workers=workers,
        auto_workers=any(each.num_workers is None for each in job.data_loader.loaders),
        threads=planned_threads(job, ranks.value, workers.value),
        shm=shm,
        memory=planned_memory(job, ranks.value, shm),
        open_files=open_files(job, shm),
        argv=argv,
        inside=instrumentation_of(job),
    )
