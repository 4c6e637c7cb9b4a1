"""Open files that the sharing strategy file_descriptor needs: one per storage that is alive in a process (measured)."""

from __future__ import annotations

from trainlaunch.job.spec import JobSpec
from trainlaunch.plan.launch_plan import SharedMemory

SPARE = 64  # the interpreter's and the libraries' own


def open_files(job: JobSpec, shm: SharedMemory) -> int:
    """Return the soft nofile limit that one process needs; 0 where no worker runs or the strategy is file_system."""
    alive = [each for each in shm.loaders if each.workers]
    if not alive or job.data_loader.sharing_strategy == "file_system":
        return 0
    in_main = sum(each.batches_held * each.tensors for each in alive)
    in_worker = max((each.prefetch_factor + 2) * each.tensors for each in alive)
    return max(in_main, in_worker) + SPARE
