"""Reads /dev/shm of a running container, and what follows from the most that was in it: the lines that size the job.

Whoever looks at /dev/shm gives a Peak: the follower of a run, the health check inside it, `status`. The highest counts,
in each command alike. On a host nobody makes the health checks that tell it, and Podman's depend on timers that may not
come: those are made here.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from trainlaunch.plan.plan_label import Planned
from trainlaunch.plan.shared_memory import PAGE, semaphores
from trainlaunch.run.base.backend import ContainerInfo, Peak, ShmReading
from trainlaunch.units import KIB, MIB, counted, human_size, round_up

WORKER = "pt_data_worker"  # torch names its worker processes so, under fork and spawn
_PAIR = re.compile(r"\b(used|peak|size)=(\d{1,18}|unlimited)(?!\d)", re.ASCII)
_WORKERS = re.compile(r"\bworkers=(\d{1,9})(?!\d)", re.ASCII)
_PEAK_WORKERS = re.compile(r"\bpeak_workers=(\d{1,9})(?!\d)", re.ASCII)  # target local's own, as the next
_LARGEST = re.compile(r"\blargest=(\d{1,18})(?!\d)", re.ASCII)
STALLED = "unhealthy: rank "  # how the health command begins what it has against a rank that waits
SHM = "/dev/shm"
STORAGE = f"{SHM}/torch_"  # so torch names the file of a storage, which it deletes at once


def read_from_proc(container: ContainerInfo, proc: Path = Path("/proc")) -> ShmReading | None:
    """Read /dev/shm through the host's /proc; None where the engine's process is not ours to see.

    The cgroup must name the container: on a remote engine, or one in a virtual machine, the pid is another process.
    """
    home = proc / str(container.pid)
    try:
        if not container.pid or container.id not in (home / "cgroup").read_text():
            return None
        shm = os.statvfs(home / "root/dev/shm")
        names = process_names(home / "root/proc")
    except OSError:
        return None
    used = (shm.f_blocks - shm.f_bfree) * shm.f_frsize
    training = [each for each, name in names.items() if name != WORKER] if container.planned.unsized else []
    return ShmReading(
        used=used,
        peak=used,
        size=shm.f_blocks * shm.f_frsize,
        workers=sum(name == WORKER for name in names.values()),
        largest=largest_storage(training),
    )


def process_names(proc: Path) -> dict[Path, str]:
    """Return the names of the processes of a /proc, by their folders."""
    found = {}
    for each in proc.iterdir():
        if each.name.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                found[each] = (each / "comm").read_text().strip()
    return found


def largest_storage(processes: Iterable[Path]) -> int:
    """Return the bytes of the largest storage that one of these processes, folders of a /proc, has mapped."""
    largest = 0
    for each in processes:
        with contextlib.suppress(OSError):
            largest = max([largest, *mapped_files(each / "maps", STORAGE).values()])
    return largest


def mapped_files(maps: Path, beginning: str) -> dict[int, int]:
    """Return the mapped lengths of files whose path begins so, by inode; the parts of one file add up."""
    found: dict[int, int] = {}
    for line in maps.read_text(errors="replace").splitlines():
        if f" {beginning}" in line:
            span, _, _, _, inode, _ = line.split(maxsplit=5)
            start, _, end = span.partition("-")
            found[int(inode)] = found.get(int(inode), 0) + int(end, 16) - int(start, 16)
    return found


def read_from_health(output: str) -> ShmReading | None:
    """Read the line that the health command prints: `used=… peak=… size=… workers=2/2`, sizes in bytes or unlimited."""
    pairs = dict(_PAIR.findall(output))
    workers, peak_workers = (
        int(found[1]) if (found := each.search(output)) else None for each in (_WORKERS, _PEAK_WORKERS)
    )
    if pairs.get("size") == "unlimited":  # the kernel counts no use of it
        return ShmReading(used=0, peak=0, size=0, workers=workers)
    if not {"used", "size"} <= pairs.keys():
        return None
    used = int(pairs["used"])
    return ShmReading(
        used=used,
        peak=max(used, int(pairs.get("peak", 0))),
        size=int(pairs["size"]),
        workers=workers,
        peak_workers=peak_workers,
        largest=int(found[1]) if (found := _LARGEST.search(output)) else 0,
    )


def is_stalled(output: str) -> bool:
    """Whether the health command says that a rank waits longer than it may.

    That is so at the first check that says it, in start_period too, which it knows: the engine's retries are for checks
    that take too long.
    """
    return output.startswith(STALLED)


class OwnChecks:
    """Judges a run's checks as an engine does: one each interval, and unhealthy after some failures in a row."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next: dict[str, float] = {}
        self._failures: dict[str, int] = {}

    def due(self, run: str, interval: float) -> bool:
        """Return whether `interval` seconds are over since the last check of a run; the next is due after as many."""
        now = self._clock()
        if now < self._next.get(run, 0.0):
            return False
        self._next[run] = now + interval
        return True

    def unhealthy(self, run: str, *, failed: bool, retries: int) -> bool:
        """Take the result of a check; return whether `retries` have failed one after another."""
        self._failures[run] = self._failures.get(run, 0) + 1 if failed else 0
        return self._failures[run] >= retries


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
    queued, batch = _queued(planned, peak.workers), batch_of(planned, peak)
    if batch is None:
        as_planned = planned.processes == 0 and peak.workers is None  # no worker, so no batch in /dev/shm
        return "" if exit_code is None or as_planned else _nothing_to_size(peak)
    if exit_code and size and size - peak.held < batch:
        return (
            f"the run filled its /dev/shm: {human_size(peak.held)} of {human_size(size)}, so its peak "
            "is not known yet: run it with a larger shm_size"
        )
    return _to_paste(planned, peak, queued, batch)


def batch_of(planned: Planned, peak: Peak) -> int | None:
    """Return the bytes of a batch by an unsized run's peak; None where too little was held to tell."""
    queued = _queued(planned, peak.workers)
    if peak.held <= _own_files(planned, peak) or peak.held < PAGE * queued or not queued:
        return None
    return max(math.ceil(peak.held / queued), peak.largest)


def size_of_batch(batch: int) -> str:
    """Return the bytes of a batch as a job file sets them, rounded up."""
    return _size(batch)


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
    held = f"/dev/shm was used up to {human_size(peak.held)}"
    if peak.workers is None:  # none ran, or nobody could count them
        seen = "no DataLoader worker was seen, as in a run of seconds"
        return f"{held} and {seen}; if the script has none, set data_loader: none"
    return f"{held}, too little for a batch: set data_loader.collate: none if its batches are no tensors"


def _to_paste(planned: Planned, peak: Peak, queued: int, batch: int) -> str:
    counts = None if peak.workers is None else min(peak.workers, planned.processes or peak.workers)
    ran = "" if counts is None else f" of {counted(counts, 'worker')}"
    largest = f", its largest storage was {human_size(peak.largest)}" if peak.largest else ""
    workers = f"  num_workers: {_each(peak.workers)}\n" if planned.processes == 0 and peak.workers else ""
    return (
        f"/dev/shm peaked at {human_size(peak.held)}{largest}, and full queues{ran} have "
        f"{queued} batches: set\n"
        f"data_loader:\n{workers}"
        f"  batch_bytes: {{size: {_size(batch)}, tensors: 1}}   # {_why(peak)}"
    )


def _each(workers: int) -> str:
    """Return the workers of one loader, as a job file sets them: those that ran may be of several."""
    return "1" if workers == 1 else f"{workers}   # what one loader has: {workers} ran in all that were alive together"


def _why(peak: Peak) -> str:
    share = "peak / (workers × prefetch_factor)"
    if peak.largest:
        return f"{share}, or the largest storage where that is more"
    return f"{share}; too small where the loop waited for each batch"


def _size(batch: int) -> str:
    size = round_up(batch, MIB if batch >= COARSE else PAGE)
    return f"{size // MIB}Mi" if size % MIB == 0 else f"{size // KIB}Ki"
