"""Watches /dev/shm of a running container: use, peak, size, and its DataLoader workers."""

from __future__ import annotations

import os
import re
from pathlib import Path

from launcher.run.backend import ShmReading, Started
from launcher.units import KIB

WORKER = "pt_data_worker"  # torch names its worker processes so, under fork and spawn
PAGE = 4 * KIB
_PAIR = re.compile(r"\b(used|peak|size)=(\d{1,18}|unlimited)(?!\d)", re.ASCII)
_WORKERS = re.compile(r"\bworkers=(\d{1,9})(?!\d)", re.ASCII)
_PEAK_WORKERS = re.compile(r"\bpeak_workers=(\d{1,9})(?!\d)", re.ASCII)  # target local's own


def read_from_proc(container: Started, proc: Path = Path("/proc")) -> ShmReading | None:
    """Read /dev/shm through the host's /proc; None where the engine's process is not ours to see.

    The cgroup must name the container: on a remote engine, or one in a virtual machine, the pid is another process.
    """
    home = proc / str(container.pid)
    try:
        if not container.pid or container.id not in (home / "cgroup").read_text():
            return None
        shm = os.statvfs(home / "root/dev/shm")
        workers = count_workers(home / "root/proc")
    except OSError:
        return None
    used = (shm.f_blocks - shm.f_bfree) * shm.f_frsize
    return ShmReading(used=used, peak=used, size=shm.f_blocks * shm.f_frsize, workers=workers)


def count_workers(proc: Path) -> int:
    """Count the DataLoader workers among the processes of a /proc."""
    count = 0
    for each in proc.iterdir():
        if each.name.isdigit():
            try:
                count += (each / "comm").read_text().strip() == WORKER
            except OSError:
                continue  # it ended between the two reads
    return count


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
    )
