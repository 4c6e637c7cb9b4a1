"""CPUs that the plan may count on, never the host's count, and the threads of numeric libraries that share them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlaunch.job.spec import JobSpec
from trainlaunch.plan.launch_plan import Derived

if TYPE_CHECKING:
    from trainlaunch.plan.launch_plan import LaunchPlan

MATH = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
# Libraries that a worker's own code calls; measured: OPENCV_FOR_THREADS_NUM is the one that OpenCV reads.
IN_WORKERS = ("OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS", "OPENCV_FOR_THREADS_NUM")
COMPILE = "TORCHINDUCTOR_COMPILE_THREADS"


def whole_cpus(job: JobSpec) -> int | None:
    """Return whole CPUs of one container, at least 1; None without `resources.cpus`."""
    if job.resources.cpus is None:
        return None
    return max(1, job.resources.cpus // 1000)


def shares_cpus(plan: LaunchPlan) -> bool:
    """Return whether the stated workers of one loader, over all ranks, outnumber `resources.cpus`, which is said."""
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
    text = job.env.get(name, "")
    return Derived(int(text), "stated", str(job.origin(f"env.{name}"))) if text.isascii() and text.isdecimal() else None
