"""Processes of this host: told apart by pid, start time and boot, so that a reused pid is never taken for another."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
