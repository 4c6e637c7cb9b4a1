"""What does not fit together: shm_size, what the loaders need, the memory limit, the estimated process memory."""

from __future__ import annotations

from collections.abc import Iterator

from trainlaunch.diagnostics import Severity
from trainlaunch.job.shm_owners import RAY, VLLM, is_vllm, law_of, starts_ray
from trainlaunch.least_shm import LEAST_SHM
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.lock_overrides import measuring_command
from trainlaunch.plan.memory_and_files import CHARGED, enough_memory
from trainlaunch.plan.shared_memory import WHEN_FULL, WorkerNumbers, container_need, size_for_all_epochs
from trainlaunch.plan.shm_extra import surroundings
from trainlaunch.plan.workers_and_threads import allowed_workers
from trainlaunch.rules.base.rule import Problem, plan_rule
from trainlaunch.units import MIB, counted, format_size, human_size, needed_size, round_up

MAX_SIZE_BYTES = 2**60


@plan_rule("TL205", Severity.ERROR)
def shm_size_holds_no_worker(plan: LaunchPlan) -> Iterator[Problem]:
    """The plan holds one automatic worker for want of a number that fits.

    A policy's limit on shm_size says itself that it is low.
    """
    job, ranks = plan.job, plan.ranks.value
    one = container_need(job, ranks, WorkerNumbers(1))
    alone = plan.auto_workers and plan.num_workers.value == 1
    if job.shm_size is None or not alone or one <= job.shm_size:
        return
    allowed = allowed_workers(job, ranks).value
    fitting, all_of_them = (size_for_all_epochs(job, ranks, WorkerNumbers(count)) for count in (1, allowed))
    yield Problem(
        f"shm_size {format_size(job.shm_size)} is too small for one worker: {needed_size(one)} required",
        f"set shm_size to {format_size(round_up(all_of_them, MIB))} ({counted(allowed, 'worker')}), or at least "
        f"{format_size(round_up(fitting, MIB))} (one worker), or delete it",
        "each worker keeps prefetch_factor batches in /dev/shm, besides those that the training loop uses",
        "shm_size",
    )


@plan_rule("TL203", Severity.ERROR)
def need_over_memory(plan: LaunchPlan) -> Iterator[Problem]:
    """The one-epoch peak is over what any machine has, or over the job's own limit."""
    shm, limit = plan.shm, plan.memory.limit
    told = f"the job's one-epoch peak of /dev/shm is {needed_size(shm.need)}"
    if shm.size.value > MAX_SIZE_BYTES:
        yield Problem(
            f"{told}, {human_size(MAX_SIZE_BYTES)} can be asked for",
            "correct data_loader.sample and batch_size: a shape has no batch in it",
            "engines and clusters count bytes in 64 bits, and take more for a negative number",
            "data_loader",
        )
    if limit is not None and shm.need >= limit:
        yield Problem(
            f"{told}, resources.memory is {format_size(limit)}",
            f"set resources.memory to {format_size(enough_memory(plan))}, or {_fewer_workers(plan)} or batch_size",
            CHARGED,
            "resources.memory",
        )


@plan_rule("TL201", Severity.ERROR)
def shm_size_over_memory(plan: LaunchPlan) -> Iterator[Problem]:
    """The mount may grow to the memory limit; where the one-epoch peak does, `need-over-memory` says so."""
    job, shm, limit = plan.job, plan.shm, plan.memory.limit
    if limit is None or shm.size.value < limit or shm.need >= limit:
        return
    stated = job.shm_size is not None
    fix = f"set resources.memory to {format_size(enough_memory(plan))}"
    if stated and not shm.unsized:
        least = format_size(round_up(max(shm.multi_epoch, LEAST_SHM), MIB))
        fix += f", or shm_size to at least {least}, or delete shm_size"
    elif stated:
        fix += f", or shm_size to {format_size(round_up(limit // 2, MIB))}, or delete shm_size"
    yield Problem(
        f"shm_size {format_size(shm.size.value)}{'' if stated else ' (automatic)'} does not fit in "
        f"resources.memory {format_size(limit)}",
        fix,
        CHARGED,
        "shm_size",
        None if stated else job.span("resources.memory"),
    )


@plan_rule("TL202", Severity.ERROR)
def shm_size_below_need(plan: LaunchPlan) -> Iterator[Problem]:
    """An automatic size is only below the one-epoch peak where a policy limits it."""
    job, shm = plan.job, plan.shm
    if shm.size.value >= shm.need or job.shm_size is None:
        return
    size, need = format_size(shm.size.value), needed_size(shm.need)
    yield Problem(
        f"shm_size {size} is below the one-epoch peak of the DataLoaders, {need}",
        f"set shm_size to {format_size(round_up(shm.worst_case, MIB))}, or delete it",
        WHEN_FULL,
        "shm_size",
    )


@plan_rule("TL210", Severity.WARNING)
def shm_size_for_one_epoch(plan: LaunchPlan) -> Iterator[Problem]:
    """The size, set or limited by the policy, holds one epoch and not several."""
    job, shm = plan.job, plan.shm
    if not shm.need <= shm.size.value < shm.multi_epoch:
        return
    fix = f"set shm_size to {format_size(round_up(shm.worst_case, MIB))}, or delete it"
    if job.shm_size is None:  # limited by the policy
        fix = f"{_fewer_workers(plan)} or batch_size"
    why = "under fork the workers of the second epoch inherit the last batch, which the loop variable still references"
    short = "from epoch 2 on"
    if shm.in_turn and sum(each.workers > 0 for each in shm.loaders) > 1:
        short = "for all loaders in turn"
        why = "the job may fail once the second loader starts: the first loop still references its last batch"
        why += ", and under fork the workers inherit it" * (job.data_loader.multiprocessing_context == "fork")
    yield Problem(
        f"shm_size {format_size(shm.size.value)} is too small {short}: {needed_size(shm.multi_epoch)} required",
        fix,
        why,
        "shm_size",
    )


@plan_rule("TL204", Severity.WARNING)
def working_set_over_memory(plan: LaunchPlan) -> Iterator[Problem]:
    """The one-epoch peak and the estimate are over the limit together."""
    shm, memory = plan.shm, plan.memory
    if memory.limit is None or shm.need + memory.working_set.value <= memory.limit:
        return
    fewer = f", or {_fewer_workers(plan)}" if shm.workers else ""
    taken = f"estimated process memory, {human_size(memory.working_set.value)},"
    taken = f"{taken} and /dev/shm, {needed_size(shm.need)}, exceed" if shm.need else f"{taken} exceeds"
    yield Problem(
        f"{taken} resources.memory {format_size(memory.limit)}",
        f"set resources.memory to {format_size(enough_memory(plan))}{fewer}",
        CHARGED if shm.need else "",
        "resources.memory",
    )


@plan_rule("TL216", Severity.INFO)
def shm_owner_unnamed(plan: LaunchPlan) -> Iterator[Problem]:
    """The command starts Ray or vLLM, whose part of /dev/shm nothing counts."""
    job = plan.job
    if job.shm_size is not None:
        return
    around = surroundings(job, plan.ranks.value)
    for owner, starts in ((VLLM, is_vllm), (RAY, starts_ray)):
        law = law_of(owner, around) if any(map(starts, around.commands)) else None
        if law is None or not law.size or any(each.name == owner for each in job.shm_extra):
            continue
        without = "data_loader: none and " * plan.shm.unsized
        yield Problem(
            f"the command starts {owner}, which takes up to {human_size(law.size)} of /dev/shm; shm_extra lacks it",
            f"write {without}shm_extra: [{{name: {owner}}}]",
            f"{owner}: {law.derivation}",
            "shm_extra",
            job.span("command"),
        )


@plan_rule("TL209", Severity.INFO)
def shm_unsized(plan: LaunchPlan) -> Iterator[Problem]:
    """The size is a limit, and not one that was computed; a script that gets no workers needs none."""
    if plan.shm.unsized and (plan.shm.most_workers or not _runs_no_worker(plan)):
        size = human_size(plan.shm.size.value)
        serves = any(map(is_vllm, surroundings(plan.job, plan.ranks.value).commands))
        yield Problem(
            f"/dev/shm size unknown (data_loader has no sample); using {size}",
            "write data_loader: none, since vLLM serves without a DataLoader"
            if serves
            else f"run `{measuring_command('probe', plan.job)}` to measure it, or set data_loader.sample",
            "the size follows from workers × prefetch_factor × the bytes of one batch; unused space costs nothing",
            "data_loader.sample",
            plan.job.span("data_loader"),
        )


def _runs_no_worker(plan: LaunchPlan) -> bool:
    from trainlaunch.rules.sources.deciding_workers import runs_no_worker  # which reads the script

    return runs_no_worker(plan)


def _fewer_workers(plan: LaunchPlan) -> str:
    from trainlaunch.rules.sources.deciding_workers import deciding_workers  # which reads the script

    return deciding_workers(plan.job).lower(plan.shm.most_workers)
