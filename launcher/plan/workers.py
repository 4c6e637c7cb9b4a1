"""DataLoader workers: how many, from the CPUs of the container, and how many fit a fixed /dev/shm."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Severity
from launcher.job.spec import JobSpec, Origin
from launcher.plan.cpu_budget import whole_cpus
from launcher.plan.launch_plan import Derived
from launcher.plan.shared_memory import Workers, container_lasting, container_need
from launcher.units import MIB, format_size, human_size, round_up

FEWEST_CPUS_FOR_WORKERS = 4  # CPU-only: below, a worker takes the CPU that trains (measured: 7 × slower on 1 CPU)
MOST_WORKERS_ON_CPU = 8
CPUS_PER_WORKER_ON_CPU = 4


def cpu_workers(job: JobSpec, ranks: int) -> Derived:
    """Return the automatic number of workers per loader and rank that the CPUs allow."""
    most = job.data_loader.max_workers
    cpus = whole_cpus(job)
    if cpus is None:
        origin = job.origin("data_loader.max_workers")
        return Derived(most, "max_workers, since resources.cpus is not stated; the preflight lowers it", str(origin))
    origin = job.origin("resources.cpus")
    if job.resources.gpus:
        value = min(most, max(1, cpus // ranks))
        return Derived(value, f"min(max_workers {most}, max(1, ⌊cpus {cpus} / ranks {ranks}⌋))", str(origin))
    if cpus < FEWEST_CPUS_FOR_WORKERS:
        return Derived(0, f"CPU-only job with {cpus} CPUs, below {FEWEST_CPUS_FOR_WORKERS}", str(origin))
    value = min(MOST_WORKERS_ON_CPU, most, cpus // (CPUS_PER_WORKER_ON_CPU * ranks))
    return Derived(
        value,
        f"CPU-only: min({MOST_WORKERS_ON_CPU}, max_workers {most}, ⌊cpus {cpus} / (4·ranks {ranks})⌋)",
        str(origin),
    )


def planned_workers(job: JobSpec, ranks: int, *, force: bool) -> tuple[Derived, list[Diagnostic]]:
    """Return the common number of workers, and an error where a fixed shm_size holds not even one."""
    stated = [each for each in job.data_loader.loaders if each.num_workers is not None]
    if len(stated) == len(job.data_loader.loaders):
        return _stated(job), _too_many(job, ranks)
    allowed = _under_ceiling(job, cpu_workers(job, ranks))
    bound = _bound(job)
    # Without workers the need is other owners' and the stated loaders': the size is checked against it as any other.
    if bound is None or allowed.value == 0 or _fits(job, ranks, allowed.value, bound.value):
        return allowed, _too_many(job, ranks)
    fitting = [count for count in range(1, allowed.value + 1) if _fits(job, ranks, count, bound.value)]
    if fitting or container_need(job, ranks, Workers(1)) <= bound.value:
        text = f"largest that fits {bound.derivation} {format_size(bound.value)}; the CPUs allow {allowed.value}"
        return Derived(max(fitting, default=1), text, bound.origin), _too_many(job, ranks)
    least = Derived(1, f"does not fit {bound.derivation}", bound.origin)
    unsaid = force or job.shm_size is None  # a policy's ceiling on shm_size says itself that it is too low
    return least, [*_too_many(job, ranks), *([] if unsaid else [_none_fits(job, ranks, allowed.value)])]


def _under_ceiling(job: JobSpec, allowed: Derived) -> Derived:
    """Return the automatic number, capped where the policy allows fewer."""
    most = job.ceiling("num_workers")
    if most is None or allowed.value <= most.value:
        return allowed
    text = f"capped by the policy's max.num_workers; {allowed.value} = {allowed.derivation}"
    return Derived(most.value, text, str(Origin("policy", most.span)))


def _bound(job: JobSpec) -> Derived | None:
    """Return the size that workers must fit: the stated one, else the policy's ceiling; None: they make the size."""
    if job.shm_size is not None:
        return Derived(job.shm_size, "shm_size", str(job.origin("shm_size")))
    most = job.ceiling("shm_size")
    return most and Derived(most.value, "the policy's max.shm_size", str(Origin("policy", most.span)))


def _fits(job: JobSpec, ranks: int, count: int, size: int) -> bool:
    """Return whether so many workers fit `size` in every epoch, not only in the first."""
    return container_lasting(job, ranks, Workers(count)) <= size


def _stated(job: JobSpec) -> Derived:
    loader = job.data_loader.loaders[0]
    own = f"data_loader.loaders.{loader.name}.num_workers"
    field = own if own in job.origins else "data_loader.num_workers"
    return Derived(loader.num_workers or 0, "stated", str(job.origin(field)))


def _too_many(job: JobSpec, ranks: int) -> list[Diagnostic]:
    """Warn where stated workers of one loader outnumber the CPUs: torch warns from the affinity only, not the quota."""
    cpus = whole_cpus(job)
    most = ranks * max((each.num_workers or 0 for each in job.data_loader.loaders), default=0)
    if cpus is None or most <= cpus:
        return []
    return [
        Diagnostic(
            "TL206",
            f"{most} DataLoader workers ({ranks} ranks) share resources.cpus {cpus}",
            f"set data_loader.num_workers to {max(1, cpus // ranks)}, or delete it",
            why="workers beyond the CPUs only take turns, and each costs memory",
            severity=Severity.WARNING,
            span=job.span("data_loader.num_workers"),
            field="data_loader.num_workers",
        )
    ]


def _none_fits(job: JobSpec, ranks: int, allowed: int) -> Diagnostic:
    one, all_of_them = (container_need(job, ranks, Workers(count)) for count in (1, allowed))
    shm_size = job.shm_size or 0
    return Diagnostic(
        "TL205",
        f"shm_size {format_size(shm_size)} does not hold one worker, which needs {human_size(one)}",
        f"set shm_size to {format_size(round_up(all_of_them, MIB))} ({allowed} workers), or at least "
        f"{format_size(round_up(one, MIB))} (one worker), or delete it",
        why="each worker keeps prefetch_factor batches in /dev/shm, besides those that the training loop holds",
        span=job.span("shm_size"),
        field="shm_size",
    )
