"""Processes of this host, told apart so that a reused pid is never taken for another, and what they hold in /dev/shm.

A process is known by pid, start time and boot. On a host others use /dev/shm too: what one run's processes have counts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trainlaunch.run.base.backend import Peak, ShmReading
from trainlaunch.run.base.shm_reading import SHM, WORKER, largest_storage, mapped_files

PROC = Path("/proc")
RUN_MARK = "TRAINLAUNCH_LOCAL_RUN"  # variable of every process of a run: its folder
_DEAD_STATES = frozenset("ZXx")
_STATE, _PARENT, _START = 0, 1, 19  # fields of /proc/PID/stat after the command's name


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process for good: `start` is in clock ticks since the boot `boot`."""

    pid: int
    start: int
    boot: str

    @property
    def alive(self) -> bool:
        """Whether this very process runs; one that has ended and waits to be reaped doesn't."""
        fields = _stat(self.pid)
        return (
            bool(fields)
            and fields[_STATE] not in _DEAD_STATES
            and int(fields[_START]) == self.start
            and boot_id() == self.boot
        )


def identity_of(pid: int) -> ProcessIdentity:
    """Return the identity of a process that is there; raises ProcessLookupError."""
    fields = _stat(pid)
    if not fields:
        raise ProcessLookupError(pid)
    return ProcessIdentity(pid, int(fields[_START]), boot_id())


def boot_id() -> str:
    """Return the id of this boot of the host."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def send(process: ProcessIdentity, number: int) -> None:
    """Send a signal to a process if it still runs; raises PermissionError where it has become another user's."""
    if process.alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def descendants(pid: int) -> list[int]:
    """Return the pids of all processes below one, nearest first."""
    children: dict[int, list[int]] = {}
    for each in pids():
        fields = _stat(each)
        if fields:
            children.setdefault(int(fields[_PARENT]), []).append(each)
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(0), [])
        found += below
        waiting += below
    return found


def marked(folder: Path) -> list[int]:
    """Return the pids of processes that carry the mark of a run in their environment."""
    mark = f"{RUN_MARK}={folder}".encode()
    found = []
    for pid in pids():
        try:
            if mark in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                found.append(pid)
        except OSError:
            continue  # it ended, or it is another user's
    return found


def kill_marked(folder: Path) -> None:
    """Send SIGKILL to every process that carries the mark of a run."""
    for pid in marked(folder):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def pids() -> Iterator[int]:
    """Yield the pids of this host as they are now."""
    return (int(each.name) for each in PROC.iterdir() if each.name.isdigit())


def _stat(pid: int) -> list[str]:
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


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


def own_folder(run_id: str) -> Path:
    """Return the folder in /dev/shm that the wrapper unpacks to for a run."""
    return Path(SHM, f".trainlaunch-{run_id}")


def remove_own_folder(run_id: str) -> None:
    """Remove what the wrapper unpacked for a run; another user's folder stays. It is there by a health check too."""
    folder = own_folder(run_id)
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
