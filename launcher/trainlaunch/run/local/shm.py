"""/dev/shm as the processes of one run use it: on a host others use it too."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from trainlaunch.run.base.backend import Peak, ShmReading
from trainlaunch.run.base.shm_reading import SHM, WORKER, largest_storage, mapped_files

RUN_ID = "TRAINLAUNCH_RUN_ID"  # the variable whose value ends the name of a run's folder in /dev/shm
_BLOCK = 512  # of st_blocks


def read_host_shm(pids: Iterable[int], earlier: Peak) -> ShmReading:
    """Return the host's /dev/shm, with the peak of these processes alone and the DataLoader workers among them."""
    whole = os.statvfs(SHM)
    now = peak_now(pids)
    peak = risen(earlier, now)
    return ShmReading(
        used=(whole.f_blocks - whole.f_bfree) * whole.f_frsize,
        peak=peak.held,
        size=whole.f_blocks * whole.f_frsize,
        workers=now.workers,
        peak_workers=peak.workers,
        largest=peak.largest,
    )


def run_id(name: str, run: str, attempt: int) -> str:
    """Return what tells an attempt of a run from all others of this host."""
    return f"{name}-{run}-{attempt}"


def remove_own_folder(run_id: str) -> None:
    """Remove what the wrapper unpacked for a run; another user's folder stays. It is there by a health check too."""
    folder = Path(SHM, f".trainlaunch-{run_id}")
    with contextlib.suppress(OSError):
        if run_id and folder.lstat().st_uid == os.geteuid():
            shutil.rmtree(folder)


def peak_now(pids: Iterable[int]) -> Peak:
    """Return what these processes hold in /dev/shm now, and the DataLoader workers among them."""
    mine = list(pids)
    workers = sum(_comm(pid) == WORKER for pid in mine)
    return Peak(held_bytes(mine), workers, largest_storage(Path(f"/proc/{pid}") for pid in mine))


def risen(earlier: Peak, now: Peak) -> Peak:
    """Return the higher of two peaks, with the largest storage of both."""
    return (earlier if earlier.held >= now.held else now)._replace(largest=max(earlier.largest, now.largest))


def held_bytes(pids: Iterable[int]) -> int:
    """Return the bytes of all files in /dev/shm that these processes have open or mapped, each file once.

    A batch on its way is such a file: torch deletes its name at once, so no listing of the folder shows it.
    """
    device = Path(SHM).stat().st_dev
    sizes: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            sizes |= mapped_files(Path(f"/proc/{pid}/maps"), f"{SHM}/") | _open(pid, device)
    return sum(sizes.values())


def _open(pid: int, device: int) -> dict[int, int]:
    found = {}
    with os.scandir(f"/proc/{pid}/fd") as files:  # the process may end while they are read
        for each in files:
            with contextlib.suppress(OSError):
                known = each.stat()
                if known.st_dev == device:
                    found[known.st_ino] = known.st_blocks * _BLOCK
    return found


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
