"""The most that a run without a sample had in /dev/shm, and the line that sizes the job from it: the same in each verb.

Whoever looks at /dev/shm gives a Peak: the follower of a run, the health check inside it, `status`. The highest counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from trainlaunch.plan.plan_label import Planned
from trainlaunch.plan.shared_memory import PAGE, semaphores
from trainlaunch.run.base.backend import Peak, ShmReading
from trainlaunch.units import KIB, MIB, counted, human_size, round_up

PREFETCHED = 2  # torch's default, of workers that nobody planned
OWN_PAGES = 2  # the health check's folder and file
COARSE = 16 * MIB  # from here on in whole MiB


def peak_of(reading: ShmReading | None) -> Peak | None:
    """Return what a reading knows of the peak; no workers at all are those of an epoch that has ended."""
    if reading is None:
        return None
    return Peak(reading.peak, reading.peak_workers or reading.workers or None, reading.largest)


def highest(peaks: Iterable[Peak | None]) -> Peak | None:
    """Return the highest of several peaks, of equal ones that of fewest known workers, with the largest storage of all.

    None without any.
    """
    known = [each for each in peaks if each is not None]
    if not known:
        return None
    return max(known, key=_rank)._replace(largest=max(each.largest for each in known))


def _rank(peak: Peak) -> tuple[int, bool, int]:
    return peak.held, peak.workers is not None, -(peak.workers or 0)


def measured_line(planned: Planned, peak: Peak | None, *, size: int, exit_code: int | None) -> str:
    """Return what an unsized run's peak says of its batches, with the lines to paste; empty for a sized run.

    `size` is that of its own /dev/shm, 0 where others use it too; `exit_code` is None while it runs.
    """
    if not planned.unsized or peak is None:
        return ""
    queued = _queued(planned, peak.workers)
    if peak.held <= _own_files(planned, peak) or peak.held < PAGE * queued or not queued:
        return "" if exit_code is None else _nothing_to_size(peak)
    batch = max(math.ceil(peak.held / queued), peak.largest)
    if exit_code and size and size - peak.held < batch:
        return (
            f"the run was unsized and filled its /dev/shm: {human_size(peak.held)} of {human_size(size)}, so its need "
            "is not known yet: run it with a larger shm_size"
        )
    return _to_paste(planned, peak, queued, batch)


def _queued(planned: Planned, workers: int | None) -> int:
    """Return the batches that a full queue of the workers that ran has: at most as many as the plan counts with.

    Where more ran than planned, the plan that the line gives is still for the planned ones, and holds the peak.
    """
    queued = planned.queued_batches or PREFETCHED * (workers or 0)
    if not planned.processes or workers is None or workers >= planned.processes:
        return queued
    return max(1, queued * workers // planned.processes)


def _own_files(planned: Planned, peak: Peak) -> int:
    """Return the bytes of a loader's semaphores and of the health check's own."""
    return PAGE * (semaphores(peak.workers or planned.processes or 0) + OWN_PAGES)


def _nothing_to_size(peak: Peak) -> str:
    held = f"the run was unsized; /dev/shm held at most {human_size(peak.held)}"
    if peak.workers is None:  # none ran, or nobody could count them
        return f"{held} and no DataLoader worker was seen with it: there is nothing to size"
    return f"{held}, too little for a batch: state data_loader.collate: none if its batches are no tensors"


def _to_paste(planned: Planned, peak: Peak, queued: int, batch: int) -> str:
    ran = "" if peak.workers is None else f" of {counted(peak.workers, 'worker')}"
    largest = f", its largest storage was {human_size(peak.largest)}" if peak.largest else ""
    workers = f"  num_workers: {peak.workers}\n" if planned.processes == 0 else ""
    return (
        f"the run was unsized; its /dev/shm peaked at {human_size(peak.held)}{largest}, and full queues{ran} have "
        f"{queued} batches: state\n"
        f"data_loader:\n{workers}"
        f"  batch_bytes: {{size: {_size(batch)}, tensors: 1}}   # {_why(peak)}"
    )


def _why(peak: Peak) -> str:
    share = "peak / (workers × prefetch_factor)"
    if peak.largest:
        return f"{share}, or the largest storage where that is more"
    return f"{share}; too small where the loop waited for each batch"


def _size(batch: int) -> str:
    size = round_up(batch, MIB if batch >= COARSE else PAGE)
    return f"{size // MIB}Mi" if size % MIB == 0 else f"{size // KIB}Ki"
