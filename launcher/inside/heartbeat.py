"""Says since when each process of the job waits for a batch, in a page of text that the health check reads.

A process has a line: its pid, its rank, the second of /proc/uptime since which it waits (0: it doesn't), and how many
batches it got, counted to 2.
"""

from __future__ import annotations

import fcntl
import functools
import itertools
import mmap
import os
import sys
import threading
import time
from typing import Any

LINE, LINES = 64, 64  # bytes; the page is full with so many processes that load data
SINCE, BATCHES = 24, 40  # where these two numbers stand in a line
ENOUGH = 2
PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "heartbeat")


class Heartbeat:
    """The line of this process, taken with its first batch. `on` is False where there is none to take."""

    def __init__(self, page: str) -> None:
        self._path = page
        self._numbers = itertools.count()
        self.begin()

    def begin(self) -> None:
        """Begin without a line: a forked process has its parent's."""
        self.on = True
        self._page: Any = None
        self._at = self._batches = self._ahead = 0
        self._waits: dict[int, int] = {}
        self._lock = threading.Lock()

    def enter(self) -> int:
        """Note that a wait begins, and return its number; several may last at once."""
        number = next(self._numbers)
        with self._lock:
            if self._page is None:
                self._take_line()
            self._waits[number] = int(time.clock_gettime(time.CLOCK_BOOTTIME)) + self._ahead
            if len(self._waits) == 1:
                self._write(SINCE, self._waits[number])
        return number

    def leave(self, number: int, *, batch: bool) -> None:
        """Note that it is over; the longest other wait goes on."""
        with self._lock:
            if self._waits.pop(number, None) is None:
                return  # a process that was forked meanwhile
            self._write(SINCE, next(iter(self._waits.values()), 0))
            if batch and self._batches < ENOUGH:
                self._batches += 1
                self._write(BATCHES, self._batches)

    def _write(self, place: int, number: int) -> None:
        at = self._at + place
        self._page[at : at + 16] = b"%-16d" % number

    def _take_line(self) -> None:
        """Take the first line that is free, or that a dead process left. Raises OSError, ValueError."""
        with open("/proc/uptime") as file:  # some containers have a clock of their own there
            uptime = float(file.read().split()[0])
        self._ahead = round(uptime - time.clock_gettime(time.CLOCK_BOOTTIME))
        with open(self._path, "r+b") as file:
            page = mmap.mmap(file.fileno(), LINE * LINES)
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                self._at = _free_line(page)
                page[self._at : self._at + LINE] = b"%-12d%-12d%-16d%-23d\n" % (os.getpid(), _rank(), 0, 0)
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)  # the mapping keeps the file open
        self._page = page


def _free_line(page: mmap.mmap) -> int:
    """Return where the first line begins that no living process has. Raises ValueError."""
    for at in range(0, LINE * LINES, LINE):
        owner = page[at : at + 12].strip().decode("ascii", "replace")
        if not owner or owner == str(os.getpid()) or not os.path.exists("/proc/" + owner):
            return at
    raise ValueError(f"{LINES} processes have a line already")


def _rank() -> int:
    """Return this process's rank as its launcher states it, else torch's own."""
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "LOCAL_RANK"):
        text = os.environ.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 10:
            return int(text)
    distributed: Any = sys.modules.get("torch.distributed")
    started = distributed is not None and distributed.is_available() and distributed.is_initialized()
    return int(distributed.get_rank()) if started else 0


def install() -> None:
    """Make every DataLoader's iterator note its waits."""
    from torch.utils.data import dataloader

    follow(dataloader._BaseDataLoaderIter, Heartbeat(PAGE), dataloader.get_worker_info)


def follow(base: Any, heartbeat: Heartbeat, worker: Any) -> None:
    """Put the notes around `base.__next__`; `worker` is torch's get_worker_info."""
    take = base.__next__
    os.register_at_fork(after_in_child=heartbeat.begin)

    def enter() -> int | None:
        try:
            if worker() is None:
                return heartbeat.enter()
        except Exception as problem:
            print(f"trainlaunch: heartbeat is off in process {os.getpid()}: {problem}", file=sys.stderr)
        heartbeat.on = False
        return None

    @functools.wraps(take)
    def __next__(self: Any) -> Any:  # noqa: N807
        number = enter() if heartbeat.on else None
        if number is None:
            return take(self)
        came = False
        try:
            batch = take(self)
            came = True
            return batch
        finally:
            heartbeat.leave(number, batch=came)

    base.__next__ = __next__
