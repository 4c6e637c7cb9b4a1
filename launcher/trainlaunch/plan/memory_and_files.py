"""Memory: the limit, the estimated process memory, and what would hold both /dev/shm and the processes. Open files.

/dev/shm is charged to the container's memory limit, so its pages and the processes share one budget.
"""

from __future__ import annotations

from trainlaunch.job.spec import JobSpec
from trainlaunch.plan.launch_plan import Derived, LaunchPlan, MemoryBudget, SharedMemory
from trainlaunch.units import GIB, MIB, human_size, round_up

RANK_ON_GPU = 2 * GIB
RANK_ON_CPU = 512 * MIB
WORKER_UNDER_FORK = 64 * MIB
WORKER_OTHERWISE = 160 * MIB
CHARGED = "/dev/shm is charged to the container's memory limit; the kernel kills the job before the mount is full"

SPARE = 64  # the interpreter's and the libraries' own


def planned_memory(job: JobSpec, ranks: int, shm: SharedMemory) -> MemoryBudget:
    """Return the limit and the process memory: an estimate per rank and worker, without the model and the data."""
    per_rank = RANK_ON_GPU if job.resources.gpus else RANK_ON_CPU
    per_worker = WORKER_UNDER_FORK if job.data_loader.multiprocessing_context == "fork" else WORKER_OTHERWISE
    workers = ranks * shm.workers
    return MemoryBudget(
        job.resources.memory,
        Derived(
            ranks * per_rank + workers * per_worker,
            f"estimate: ranks {ranks} × {human_size(per_rank)} + workers {workers} × {human_size(per_worker)}",
            "default",
        ),
    )


def enough_memory(plan: LaunchPlan) -> int:
    """Return a limit that holds the processes and what /dev/shm may hold: the one-epoch peak, or the job's size."""
    in_shm = max(plan.shm.multi_epoch, plan.job.shm_size or 0)
    return round_up(in_shm + plan.memory.working_set.value, 512 * MIB)


def open_files(job: JobSpec, shm: SharedMemory) -> int:
    """Return the soft nofile limit that one process needs; 0 where no worker runs or the strategy is file_system."""
    alive = [each for each in shm.loaders if each.workers]
    if not alive or job.data_loader.sharing_strategy == "file_system":
        return 0
    in_main = sum(each.batches_held * each.tensors for each in alive)
    in_worker = max((each.prefetch_factor + 2) * each.tensors for each in alive)
    return max(in_main, in_worker) + SPARE
