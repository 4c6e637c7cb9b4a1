"""Watches /dev/shm of a running container: use, peak, size, and its DataLoader workers.

On a host nobody makes the health checks that tell them, and Podman leaves them to timers that may not come: those are
made here.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from trainlaunch.run.base.backend import ContainerInfo, ShmReading
from trainlaunch.units import KIB

WORKER = "pt_data_worker"  # torch names its worker processes so, under fork and spawn
PAGE = 4 * KIB
_PAIR = re.compile(r"\b(used|peak|size)=(\d{1,18}|unlimited)(?!\d)", re.ASCII)
_WORKERS = re.compile(r"\bworkers=(\d{1,9})(?!\d)", re.ASCII)
_PEAK_WORKERS = re.compile(r"\bpeak_workers=(\d{1,9})(?!\d)", re.ASCII)  # target local's own, as the next
_LARGEST = re.compile(r"\blargest=(\d{1,18})(?!\d)", re.ASCII)
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
