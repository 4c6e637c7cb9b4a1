"""How many processes and workers a job starts, and on which CPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlaunch.diagnostics import Severity
from trainlaunch.job.spec import JobSpec
from trainlaunch.job.starter import PER_GPU, Starter
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.lock_overrides import fresh_tune
from trainlaunch.plan.workers_and_threads import shares_cpus, whole_cpus
from trainlaunch.rules.base.rule import Problem, plan_rule
from trainlaunch.units import counted

if TYPE_CHECKING:
    from trainlaunch.rules.sources.deciding_workers import WorkersDecision

_CROWDED = 2  # workers for each CPU: those of one loader are often idle while another one runs
PREFETCH = "{prefetch_factor}"


@plan_rule("TL207", Severity.ERROR)
def ranks_unknown(plan: LaunchPlan) -> Iterator[Problem]:
    """Two numbers that are set differ, or a command starts ranks and nothing says how many."""
    job, starter = plan.job, plan.job.starter
    nproc = job.torchrun.nproc_per_node if job.torchrun else None
    if job.ranks_per_container is not None and nproc not in {None, job.ranks_per_container}:
        yield Problem(
            f"ranks_per_container {job.ranks_per_container} and torchrun.nproc_per_node {nproc} differ",
            f"delete ranks_per_container (trainlaunch would take {nproc})",
            "torchrun starts nproc_per_node ranks in the container, and /dev/shm is sized for the ranks in it",
            "ranks_per_container",
        )
    if starter is not None and job.torchrun is None:
        yield from _started(job, starter)


def _started(job: JobSpec, starter: Starter) -> Iterator[Problem]:
    """Yield what is wrong between the number that the command starts and the one that the job sets."""
    started = job.resources.gpus.count or None if starter.count == PER_GPU else starter.count
    why = "/dev/shm, memory and threads are for all training processes of the container"
    if job.ranks_per_container is None:
        if started is None and not job.resources.gpus.count:
            yield Problem(
                f"{starter.field} calls {starter.name}, and nothing says how many ranks it starts",
                f"add ranks_per_container: 2, or the number that it starts, and {starter.typed(2)} to the call",
                why,
                "ranks_per_container",
                job.span(starter.field),
            )
    elif isinstance(started, int) and started != job.ranks_per_container:
        per_gpu = f"{starter.words}, one per GPU: {started}" if starter.count == PER_GPU else starter.words
        yield Problem(
            f"ranks_per_container {job.ranks_per_container} and {starter.field} ({per_gpu}) differ",
            f"delete ranks_per_container (trainlaunch would take {started})",
            why,
            "ranks_per_container",
        )


@plan_rule("TL211", Severity.WARNING)
def ranks_not_stated(plan: LaunchPlan) -> Iterator[Problem]:
    """The number of ranks is that of the GPUs only because nothing else says it."""
    job, starter = plan.job, plan.job.starter
    gpus = job.resources.gpus.count
    if starter is None or starter.count is not None or not gpus or job.torchrun or job.ranks_per_container is not None:
        return
    yield Problem(
        f"{starter.field} calls {starter.name}, and nothing says how many ranks it starts; planned: {gpus}, as GPUs",
        f"add {starter.typed(gpus)} to the call, or ranks_per_container: {gpus}",
        f"/dev/shm, memory and threads are for {counted(gpus, 'rank')}, and it may start another number",
        "ranks_per_container",
        job.span(starter.field),
    )


@plan_rule("TL206", Severity.WARNING)
def workers_exceed_cpus(plan: LaunchPlan) -> Iterator[Problem]:
    """The workers that one loader sets, over all ranks, outnumber the CPUs, or those of all loaders by far."""
    ranks, cpus, stated = plan.ranks.value, whole_cpus(plan.job), plan.job.resources.cpus
    if cpus is None or stated is None or _measured(plan):
        return
    if shares_cpus(plan):
        who, most = f"{counted(plan.stated_processes, 'DataLoader worker')} ({counted(ranks, 'rank')})", cpus // ranks
        way_out = ""
    elif plan.processes > _CROWDED * cpus and plan.stated_processes:
        loaders = len(plan.job.data_loader.loaders)
        who = f"{counted(plan.processes, 'DataLoader worker')} ({counted(ranks, 'rank')}, {counted(loaders, 'loader')} "
        who, most, way_out = f"{who}alive together)", cpus // (ranks * loaders), ", or loaders_run: in_turn if they do"
    else:
        return
    decision, tune = _decision(plan), fresh_tune(plan.job)
    most = max(1, most) if tune is None else tune.num_workers
    way_out = f"{', or delete it' * (decision.kind == 'plan')}{way_out}"
    yield Problem(
        f"{who} exceed resources.cpus {stated / 1000:g}",
        f"{decision.to_have(most)}{way_out}",
        "workers beyond the CPUs only take turns, and each costs memory",
        "data_loader.num_workers",
    )


@plan_rule("TL220", Severity.WARNING)
def script_has_more_workers(plan: LaunchPlan) -> Iterator[Problem]:
    """The script's own number of each of its loaders is above the planned: of several, one branch alone may run."""
    from trainlaunch.rules.sources.deciding_workers import workers_decisions  # which reads the script

    if plan.by_run or plan.shm.unsized:
        return
    planned = plan.shm.most_workers
    decisions = workers_decisions(plan.job)
    if all(each.is_certain and (each.number or 0) > planned for each in decisions):
        most = max(decisions, key=lambda each: each.number or 0)
        other = "write data_loader.inject: force" if most.kind == "constant" else most.take_planned()
        yield Problem(
            f"{most.words}, and {counted(planned, 'worker')} a loader are planned",
            f"{other}, or set data_loader.num_workers to {most.number}",
            "/dev/shm, memory and threads are planned for fewer workers than the script starts",
            "data_loader.num_workers",
        )


def _decision(plan: LaunchPlan) -> WorkersDecision:
    from trainlaunch.rules.sources.deciding_workers import deciding_workers  # which reads the script

    return deciding_workers(plan.job)


def _measured(plan: LaunchPlan) -> bool:
    """Whether `tune` found the number set here fastest on these very CPUs: a measurement outranks a rule of thumb."""
    tune = fresh_tune(plan.job)
    stated = {each.num_workers for each in plan.job.data_loader.loaders}
    return tune is not None and stated <= {None, tune.num_workers}


@plan_rule("TL208", Severity.WARNING)
def prefetch_without_workers(plan: LaunchPlan) -> Iterator[Problem]:
    """An argument is or ends with the token, and no loader has a worker."""
    if not plan.shm.workers and any(each.endswith(PREFETCH) for each in plan.job.command or ()):
        yield Problem(
            f"the command passes {PREFETCH}, but num_workers is 0",
            f"{_decision(plan).to_have(1)}, or drop the argument",
            "torch refuses a prefetch_factor without workers",
            "command",
        )
