"""Says since when each process of the job waits for a batch, in a page of text that the health check reads.

A process has a line: its pid, when it started (a later one may get its pid), its rank, the second of /proc/uptime since
which it waits (0: it doesn't), and how many batches it got, counted to 2.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
import time
from typing import Any

from trainlaunch.inside.batch_waits import follow
from trainlaunch.inside.process import off, rank

LINE, LINES = 64, 64  # bytes; so many processes that load data fill the page
SINCE, BATCHES = 32, 47  # where these two numbers stand in a line
PAGE = os.path.join(os.path.dirname(__file__), os.pardir, "heartbeat")
NOBODY = b"%-15d" % 0  # who trains waits since 0
_clock, _BOOTTIME, _thread = time.clock_gettime, time.CLOCK_BOOTTIME, threading.get_ident


class Heartbeat:
    """The line of this process, taken with its first batch."""

    def __init__(self, page: str) -> None:
        self._path = page
        self.begin()

    def begin(self) -> None:
        """Begin without a line: a forked process has its parent's."""
        self._on = True
        self._page: Any = None
        self._at = self._batches = self._ahead = self._second = 0
        self._text = NOBODY
        self._waits: dict[int, bytes] = {}  # the second since which a thread waits, the longest first
        self._lock = threading.Lock()

    def enter(self, _: object) -> None:
        """Note that this thread begins to wait."""
        if not self._on:
            return
        try:
            with self._lock:
                if self._page is None:
                    self._take_line()
                second = int(_clock(_BOOTTIME)) + self._ahead
                if second != self._second:
                    self._second, self._text = second, b"%-15d" % second
                if not self._waits:
                    self._page[self._since] = self._text
                self._waits[_thread()] = self._text
        except Exception as problem:
            self._on = False
            off("heartbeat", problem)

    def leave(self, _: object, came: bool) -> None:
        """Note that it is over, with a batch or without; the longest other wait goes on."""
        if not self._on or not self._page:  # interrupted
            return
        with self._lock:
            self._waits.pop(_thread(), None)
            self._page[self._since] = next(iter(self._waits.values())) if self._waits else NOBODY
            if came and self._batches < 2:
                self._batches += 1
                self._page[self._at + BATCHES : self._at + BATCHES + 15] = b"%-15d" % self._batches

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
        self._since = slice(self._at + SINCE, self._at + SINCE + 15)
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
