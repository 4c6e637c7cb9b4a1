"""DataLoader workers, how many, and how many fit a fixed /dev/shm; and the threads of numeric libraries beside them.

Both share the CPUs that the plan may count on, never the host's count. templates/preflight.sh lowers both where the
container has fewer.
"""

from __future__ import annotations

from trainlaunch.job.loader_spec import KIND
from trainlaunch.job.spec import JobSpec, Origin
from trainlaunch.plan.launch_plan import Derived, LaunchPlan
from trainlaunch.plan.lock_overrides import MATH, fresh_tune
from trainlaunch.plan.shared_memory import WorkerNumbers, container_need, size_for_all_epochs
from trainlaunch.units import counted, format_size

# Libraries that a worker's own code calls; measured: OPENCV_FOR_THREADS_NUM is the one that OpenCV reads.
IN_WORKERS = ("OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS", "OPENCV_FOR_THREADS_NUM")
COMPILE = "TORCHINDUCTOR_COMPILE_THREADS"


def whole_cpus(job: JobSpec) -> int | None:
    """Return whole CPUs of one container, at least 1; None without `resources.cpus`."""
    if job.resources.cpus is None:
        return None
    return max(1, job.resources.cpus // 1000)


def shares_cpus(plan: LaunchPlan) -> bool:
    """Return whether the workers that one loader sets, over all ranks, outnumber `resources.cpus`, and say so."""
    cpus = whole_cpus(plan.job)
    return cpus is not None and plan.stated_processes > cpus


def planned_threads(job: JobSpec, ranks: int, workers: int) -> tuple[tuple[str, Derived], ...]:
    """Return each variable's planned value; none without `resources.cpus` or with `inject: off`."""
    cpus = whole_cpus(job)
    if cpus is None or job.data_loader.inject == "off":
        return ()
    origin = str(job.origin("resources.cpus"))
    if job.resources.gpus:
        math = Derived(
            max(1, min(4, cpus // (4 * ranks))), f"max(1, min(4, ⌊cpus {cpus} / (4·ranks {ranks})⌋))", origin
        )
    else:
        math = Derived(
            max(1, cpus // ranks - workers), f"max(1, ⌊cpus {cpus} / ranks {ranks}⌋ − workers {workers})", origin
        )
    decided = dict.fromkeys(MATH, math)
    if workers:
        decided |= dict.fromkeys(IN_WORKERS, Derived(1, "one per worker process", "default"))
    decided[COMPILE] = Derived(max(1, cpus // ranks), f"⌊cpus {cpus} / ranks {ranks}⌋", origin)
    return tuple((name, _own_value(job, name) or value) for name, value in decided.items())


def alike(threads: tuple[tuple[str, Derived], ...]) -> dict[Derived, list[str]]:
    """Return the variables by their common number, so that they can be shown in one line each."""
    groups: dict[Derived, list[str]] = {}
    for name, number in threads:
        groups.setdefault(number, []).append(name)
    return groups


def _own_value(job: JobSpec, name: str) -> Derived | None:
    """Return the job's own setting, which wins."""
    text, origin = job.env.get(name, ""), job.origin(f"env.{name}")
    how = "the fastest that `trainlaunch tune` found" if origin.kind == KIND else "set"
    return Derived(int(text), how, str(origin)) if text.isascii() and text.isdecimal() else None


MIN_CPUS_FOR_WORKERS = 4  # CPU-only: below, a worker takes the CPU that trains (measured: 7 × slower on 1 CPU)
MAX_WORKERS_ON_CPU = 8
CPUS_PER_WORKER_ON_CPU = 4


def cpu_workers(job: JobSpec, ranks: int) -> Derived:
    """Return the automatic number of workers per loader and rank that the CPUs allow."""
    most = job.data_loader.max_workers
    cpus = whole_cpus(job)
    if cpus is None:
        origin = job.origin("data_loader.max_workers")
        return Derived(most, "max_workers, since resources.cpus is not set; the preflight lowers it", str(origin))
    origin = job.origin("resources.cpus")
    if job.resources.gpus:
        value = min(most, max(1, cpus // ranks))
        return Derived(value, f"min(max_workers {most}, max(1, ⌊cpus {cpus} / ranks {ranks}⌋))", str(origin))
    if cpus < MIN_CPUS_FOR_WORKERS:
        return Derived(0, f"CPU-only job with {counted(cpus, 'CPU')}, below {MIN_CPUS_FOR_WORKERS}", str(origin))
    value = min(MAX_WORKERS_ON_CPU, most, cpus // (CPUS_PER_WORKER_ON_CPU * ranks))
    return Derived(
        value,
        f"CPU-only: min({MAX_WORKERS_ON_CPU}, max_workers {most}, ⌊cpus {cpus} / (4·ranks {ranks})⌋)",
        str(origin),
    )


def planned_workers(job: JobSpec, ranks: int) -> Derived:
    """Return the common number of automatic workers; 1 where a fixed shm_size holds not even one."""
    if not job.data_loader.loaders:
        return Derived(0, "data_loader is none", str(job.origin("data_loader")))
    if all(each.num_workers is not None for each in job.data_loader.loaders):
        return _stated(job)
    allowed = allowed_workers(job, ranks)
    bound = _bound(job)
    # Without workers the one-epoch peak is of other owners and of loaders with a set number: check it as any other.
    if bound is None or allowed.value == 0 or _fits(job, ranks, allowed.value, bound.value):
        return allowed
    fitting = [count for count in range(1, allowed.value + 1) if _fits(job, ranks, count, bound.value)]
    if fitting or container_need(job, ranks, WorkerNumbers(1)) <= bound.value:
        return Derived(
            max(fitting, default=1),
            f"largest that fits {bound.derivation} {format_size(bound.value)}; the CPUs allow {allowed.value}",
            bound.origin,
        )
    return Derived(1, f"does not fit {bound.derivation}", bound.origin)


def allowed_workers(job: JobSpec, ranks: int) -> Derived:
    """Return the automatic number that tune found, else the CPUs allow, under the policy's, whether it fits or not."""
    tune = fresh_tune(job)
    if tune is None:
        return _under_ceiling(job, cpu_workers(job, ranks))
    on = "" if job.resources.cpus or not tune.usable_cpus else f" on {counted(tune.usable_cpus, 'CPU')}"
    found = Derived(tune.num_workers, f"the fastest that `trainlaunch tune` found{on}", str(Origin(KIND, tune.span)))
    return _under_ceiling(job, found)


def _under_ceiling(job: JobSpec, allowed: Derived) -> Derived:
    """Return the automatic number, or the policy's limit where that is lower."""
    most = job.ceiling("num_workers")
    if most is None or allowed.value <= most.value:
        return allowed
    return Derived(
        most.value,
        f"limited by the policy's max.num_workers; {allowed.value} = {allowed.derivation}",
        str(Origin("policy", most.span)),
    )


def _bound(job: JobSpec) -> Derived | None:
    """Return the size that workers must fit: the job's, else the policy's limit; None: they make the size."""
    if job.shm_size is not None:
        return Derived(job.shm_size, "shm_size", str(job.origin("shm_size")))
    most = job.ceiling("shm_size")
    return most and Derived(most.value, "the policy's max.shm_size", str(Origin("policy", most.span)))


def _fits(job: JobSpec, ranks: int, count: int, size: int) -> bool:
    """Return whether so many workers fit `size` in every epoch, not only in the first, and NCCL with them."""
    return size_for_all_epochs(job, ranks, WorkerNumbers(count)) <= size


def _stated(job: JobSpec) -> Derived:
    loader = job.data_loader.loaders[0]
    return Derived(loader.num_workers or 0, "set", str(job.origin(job.loader_field(loader.name, "num_workers"))))
