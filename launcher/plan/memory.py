"""Memory: the limit, the estimated working set, and whether /dev/shm and the processes fit in it together.

/dev/shm is charged to the container's memory limit, so its pages and the processes share one budget.
"""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Severity, errors_among
from launcher.job.spec import JobSpec
from launcher.plan.launch_plan import Derived, Memory, SharedMemory
from launcher.units import GIB, MIB, format_size, human_size, round_up

RANK_ON_GPU = 2 * GIB
RANK_ON_CPU = 512 * MIB
WORKER_UNDER_FORK = 64 * MIB
WORKER_OTHERWISE = 160 * MIB
LARGEST_SIZE = 2**60
CHARGED = "/dev/shm is charged to the container's memory limit; the kernel kills the job before the mount is full"


def planned_memory(job: JobSpec, ranks: int, shm: SharedMemory) -> Memory:
    """Return the limit and the working set: an estimate per rank and worker, without the model and the data."""
    per_rank = RANK_ON_GPU if job.resources.gpus else RANK_ON_CPU
    per_worker = WORKER_UNDER_FORK if job.data_loader.multiprocessing_context == "fork" else WORKER_OTHERWISE
    workers = ranks * sum(each.workers for each in shm.loaders)
    text = f"estimate: ranks {ranks} × {human_size(per_rank)} + workers {workers} × {human_size(per_worker)}"
    return Memory(job.resources.memory, Derived(ranks * per_rank + workers * per_worker, text, "default"))


def size_findings(job: JobSpec, ranks: int, shm: SharedMemory, *, force: bool) -> list[Diagnostic]:
    """Return what is wrong between shm_size, need, the memory limit and the working set, most certain first."""
    memory = planned_memory(job, ranks, shm)
    checks = (
        _size_over_everything,
        _need_over_memory,
        _size_over_memory,
        _size_below_need,
        _first_epoch_only,
        _working_set_over_memory,
    )
    found = [finding for check in checks if (finding := check(job, shm, memory)) is not None]
    if force:
        found = [_forced(each) if each.code == "TL202" else each for each in found]
    return list(errors_among(found)) or found


def _forced(finding: Diagnostic) -> Diagnostic:
    message = f"{finding.message} (--force: the preflight will stop it with 78)"
    return finding._replace(message=message, severity=Severity.WARNING)


def _enough_memory(job: JobSpec, shm: SharedMemory, memory: Memory) -> str:
    """Return a limit that holds the processes and what /dev/shm may hold: the need, or the size that the job states."""
    return format_size(round_up(max(shm.lasting, job.shm_size or 0) + memory.working_set.value, 512 * MIB))


def _size_over_everything(job: JobSpec, shm: SharedMemory, memory: Memory) -> Diagnostic | None:
    if shm.size.value <= LARGEST_SIZE:
        return None
    return Diagnostic(
        "TL203",
        f"the DataLoaders need {human_size(shm.need)} of /dev/shm, {human_size(LARGEST_SIZE)} can be asked for",
        "correct data_loader.sample and batch_size: a shape has no batch in it",
        why="engines and clusters count bytes in 64 bits, and take more for a negative number",
        span=job.span("data_loader"),
        field="data_loader",
    )


def _need_over_memory(job: JobSpec, shm: SharedMemory, memory: Memory) -> Diagnostic | None:
    if memory.limit is None or shm.need < memory.limit:
        return None
    return Diagnostic(
        "TL203",
        f"the DataLoaders need {human_size(shm.need)} of /dev/shm, resources.memory is {format_size(memory.limit)}",
        f"set resources.memory to {_enough_memory(job, shm, memory)}, or lower data_loader.num_workers "
        f"(now {max((each.workers for each in shm.loaders), default=0)}) or batch_size",
        why=CHARGED,
        span=job.span("resources.memory"),
        field="resources.memory",
    )


def _size_over_memory(job: JobSpec, shm: SharedMemory, memory: Memory) -> Diagnostic | None:
    if memory.limit is None or shm.size.value < memory.limit or shm.need >= memory.limit:
        return None
    stated = job.shm_size is not None
    fix = f"set resources.memory to {_enough_memory(job, shm, memory)}"
    if stated and not shm.unsized:
        fix += f", or shm_size to at least {format_size(round_up(max(shm.lasting, 64 * MIB), MIB))}, or delete shm_size"
    elif stated:
        fix += f", or shm_size to {format_size(round_up(memory.limit // 2, MIB))}, or delete shm_size"
    return Diagnostic(
        "TL201",
        f"shm_size {format_size(shm.size.value)}{'' if stated else ' (automatic)'} does not fit in "
        f"resources.memory {format_size(memory.limit)}",
        fix,
        why=CHARGED,
        span=job.span("shm_size" if stated else "resources.memory"),
        field="shm_size",
    )


def _size_below_need(job: JobSpec, shm: SharedMemory, memory: Memory) -> Diagnostic | None:
    if shm.size.value >= shm.need or job.shm_size is None:  # an automatic one is only below a policy's ceiling
        return None
    return Diagnostic(
        "TL202",
        f"shm_size {format_size(shm.size.value)} is below the {human_size(shm.need)} that the DataLoaders need",
        f"set shm_size to {format_size(round_up(max(shm.lasting, shm.hard), MIB))}, "
        f"at least {format_size(round_up(shm.lasting, MIB))}, or delete it",
        why="a full /dev/shm ends in 'Bus error' or 'No space left on device', or the training loop waits for ever",
        span=job.span("shm_size"),
        field="shm_size",
    )


def _first_epoch_only(job: JobSpec, shm: SharedMemory, memory: Memory) -> Diagnostic | None:
    if not shm.need <= shm.size.value < shm.lasting:
        return None
    fix = f"set shm_size to {format_size(round_up(max(shm.lasting, shm.hard), MIB))}, or delete it"
    if job.shm_size is None:  # capped by the policy
        fix = f"lower data_loader.num_workers (now {max(each.workers for each in shm.loaders)}) or batch_size"
    return Diagnostic(
        "TL210",
        f"shm_size {format_size(shm.size.value)} holds one epoch ({human_size(shm.need)}), "
        f"and several need {human_size(shm.lasting)}",
        fix,
        why="under fork the workers of the second epoch inherit the last batch, which the loop variable still holds",
        severity=Severity.WARNING,
        span=job.span("shm_size"),
        field="shm_size",
    )


def _working_set_over_memory(job: JobSpec, shm: SharedMemory, memory: Memory) -> Diagnostic | None:
    together = shm.need + memory.working_set.value
    if memory.limit is None or together <= memory.limit:
        return None
    fewer = ", or fewer data_loader.num_workers" if any(each.workers for each in shm.loaders) else ""
    return Diagnostic(
        "TL204",
        f"/dev/shm {human_size(shm.need)} and the processes' estimated {human_size(memory.working_set.value)} "
        f"exceed resources.memory {format_size(memory.limit)}",
        f"set resources.memory to {_enough_memory(job, shm, memory)}{fewer}",
        why=CHARGED,
        severity=Severity.WARNING,
        span=job.span("resources.memory"),
        field="resources.memory",
    )
