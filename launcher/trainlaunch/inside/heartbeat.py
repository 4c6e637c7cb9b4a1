"""Says since when each process of the job waits for a batch, in a page of text that the health check reads.

A process has a line: its pid, when it started (a later one may get its pid), its rank, the second of /proc/uptime since
which it waits (0: it doesn't), and how many batches it got, counted to 2.
"""

from __future__ import annotations

import fcntl
import functools
import mmap
import os
import threading
import time
from typing import Any

from trainlaunch.inside.process import off, rank

LINE, LINES = 64, 64  # bytes; so many processes that load data fill the page
SINCE, BATCHES = 32, 47  # where these two numbers stand in a line
PAGE = os.path.join(os.path.dirname(__file__), os.pardir, "heartbeat")


class Heartbeat:
    """The line of this process, taken with its first batch. `on` is False where there is none to take."""

    def __init__(self, page: str) -> None:
        self._path = page
        self.begin()

    def begin(self) -> None:
        """Begin without a line: a forked process has its parent's."""
        self.on = True
        self._page: Any = None
        self._at = self._batches = self._ahead = 0
        self._waits: dict[object, int] = {}
        self._lock = threading.RLock()  # a signal's handler may load data too

    def enter(self) -> object:
        """Return a wait that begins, of which several may last at once; None without a line."""
        wait = object()
        try:
            with self._lock:
                if self._page is None:
                    self._take_line()
                self._waits[wait] = int(time.clock_gettime(time.CLOCK_BOOTTIME)) + self._ahead
                if len(self._waits) == 1:
                    self._write(SINCE, self._waits[wait])
        except Exception as problem:
            self.on = False
            off("heartbeat", problem)
            return None
        return wait

    def leave(self, wait: object, *, batch: bool) -> None:
        """Note that it is over; the longest other wait goes on."""
        with self._lock:
            if self._waits.pop(wait, None) is None:
                return  # a process that was forked meanwhile
            self._write(SINCE, next(iter(self._waits.values()), 0))
            if batch and self._batches < 2:
                self._batches += 1
                self._write(BATCHES, self._batches)

    def _write(self, place: int, number: int) -> None:
        at = self._at + place
        self._page[at : at + 15] = b"%-15d" % number

    def _take_line(self) -> None:
        """Take the first line that is free, or that a dead process left. Raises OSError, ValueError."""
        with open("/proc/uptime") as file:  # some containers have a clock of their own there
            self._ahead = round(float(file.read().split()[0]) - time.clock_gettime(time.CLOCK_BOOTTIME))
        with open("/proc/self/stat", "rb") as stat:
            started = int(stat.read().rpartition(b")")[2].split()[19])
        with open(self._path, "r+b") as own:
            fcntl.lockf(own, fcntl.LOCK_EX)  # until it is closed
            page = mmap.mmap(own.fileno(), LINE * LINES)
            self._at = _free_line(page)
            line = b"%-8d%-14d%-10d%-15d%-16d\n" % (os.getpid(), started, rank(), 0, 0)
            page[self._at : self._at + LINE] = line
        self._page = page


def _free_line(page: mmap.mmap) -> int:
    """Return where the first line begins that no living process has. Raises ValueError."""
    for at in range(0, LINE * LINES, LINE):
        owner = page[at : at + 8].decode("latin-1").strip()
        if not owner or owner == str(os.getpid()) or not os.path.exists("/proc/" + owner):
            return at
    raise ValueError(f"{LINES} processes have a line already")


def install() -> None:
    """Make every DataLoader's iterator note its waits."""
    from torch.utils.data import dataloader

    follow(dataloader._BaseDataLoaderIter, Heartbeat(PAGE), dataloader.get_worker_info)


def follow(base: Any, heartbeat: Heartbeat, worker: Any) -> None:
    """Put the notes around `base.__next__`; `worker` is torch's get_worker_info."""
    take = base.__next__
    os.register_at_fork(after_in_child=heartbeat.begin)

    @functools.wraps(take)
    def __next__(self: Any) -> Any:  # noqa: N807
        wait = heartbeat.enter() if heartbeat.on and worker() is None else None
        came = False
        try:
            batch = take(self)
            came = True
            return batch
        finally:
            heartbeat.leave(wait, batch=came)

    base.__next__ = __next__
