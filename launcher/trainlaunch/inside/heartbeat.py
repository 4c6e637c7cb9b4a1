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

from trainlaunch.inside.batch_waits import NOBODY, WAITING, follow
from trainlaunch.inside.process import off, rank

LINE, LINES = 64, 64  # bytes; so many processes that load data fill the page
SINCE, BATCHES = 32, 47  # where these two numbers stand in a line
PAGE = os.path.join(os.path.dirname(__file__), os.pardir, "heartbeat")
SECOND = 1_000_000_000


class Heartbeat:
    """The line of this process, taken with its first batch: `page[since]` is where `text` belongs until then."""

    role = "beat"

    def __init__(self, page: str) -> None:
        self._path = page
        self.begin()

    def begin(self) -> None:
        """Begin without a line: a forked process has its parent's."""
        self.page: Any = bytearray(LINE)  # nobody's
        self.since, self.text, self.until = slice(0, 15), NOBODY, 0
        self._at = self._batches = self._ahead = 0
        self._lock = threading.Lock()

    def refresh(self, begun: int) -> None:
        """Let `text` be the second of a time, `until` when it is another one; take the line at first."""
        try:
            with self._lock:
                if not self.until:
                    self._take_line()
                self.text, self.until = self._second(begun), begun - begun % SECOND + SECOND
        except Exception as problem:
            self.until = 1 << 62
            off("heartbeat", problem)

    def settle(self) -> None:
        """Say since when the thread waits that does so longest, also where one came or went meanwhile."""
        said, longest = None, _longest()
        while said != longest:
            said = longest
            self.page[self.since] = self._second(said) if said else NOBODY
            longest = _longest()

    def count(self) -> None:
        """Count a batch."""
        with self._lock:
            if self._batches < 2:
                self._batches += 1
                self.page[self._at + BATCHES : self._at + BATCHES + 15] = b"%-15d" % self._batches

    def _second(self, time: int) -> bytes:
        return b"%-15d" % (time // SECOND + self._ahead)

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
        self.since = slice(self._at + SINCE, self._at + SINCE + 15)
        self.page = page  # last: another thread may write


def _longest() -> int:
    """Return since when the thread waits that does so longest, 0 where none does."""
    return next(iter([*WAITING.values()]), 0)


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
