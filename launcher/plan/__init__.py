"""From what a job asks for to what is decided: the LaunchPlan."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, errors_among
from launcher.errors import JobFileRejected
from launcher.job.spec import JobSpec
from launcher.plan.findings import findings_of
from launcher.plan.fingerprint import input_hash
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.memory import planned_memory, size_findings
from launcher.plan.open_files import open_files
from launcher.plan.ranks import argv_of, name_errors, rank_errors, ranks_of
from launcher.plan.shared_memory import Workers, shared_memory
from launcher.plan.threads import planned_threads
from launcher.plan.workers import planned_workers

__all__ = ["make_plan"]


def make_plan(job: JobSpec, *, name: str | None = None, force: bool = False) -> LaunchPlan:
    """Return the plan of `job`; `name` fixes its name, `force` lets a shm_size below need pass as a warning.

    Raises JobFileRejected with every error that the numbers have.
    """
    ranks = ranks_of(job)
    workers, found = planned_workers(job, ranks.value, force=force)
    shm = shared_memory(job, ranks.value, Workers(workers.value))
    problems: list[Diagnostic] = [*name_errors(job, name or job.name), *rank_errors(job), *found]
    if not errors_among(found):  # no worker fits: the sizes below would only say it again
        problems += size_findings(job, ranks.value, shm, force=force)
    if job.policy is not None:
        from launcher.plan.policy import policy_errors  # most jobs have none

        problems += policy_errors(job, shm)  # last, and whatever --force says
    if errors_among(problems):
        raise JobFileRejected(problems)
    argv = argv_of(job, ranks.value)
    return LaunchPlan(
        job=job,
        target=job.target,
        name=name or job.name,
        name_fixed=name is not None,
        forced=force,
        gpus=job.resources.gpus,
        ranks=ranks,
        num_workers=workers,
        auto_workers=any(each.num_workers is None for each in job.data_loader.loaders),
        threads=planned_threads(job, ranks.value, workers.value),
        shm=shm,
        memory=planned_memory(job, ranks.value, shm),
        open_files=open_files(job, shm),
        argv=argv,
        input=input_hash(job, name=name or job.name, num_workers=workers.value, shm=shm, argv=argv),
        findings=(*problems, *findings_of(job, shm, fixed_name=name)),
    )
