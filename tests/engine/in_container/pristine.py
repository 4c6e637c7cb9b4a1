"""Runs inside a container that many cases share: makes it what a fresh one is again, or says that it can't."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

# The kernel's, and what the host mounts for one case after the other, or for all of them.
NOT_THE_CONTAINERS = ("/proc", "/sys", "/job", "/delivered", "/server")
INIT = 1
ENDS_WITHIN = 30.0  # seconds


class Entry(NamedTuple):
    """What a case could change of a file or folder; only a file has a size and a time, only a link a target."""

    mode: int
    user: int
    group: int
    size: int
    written: int
    target: str


class Container:
    """The container as it was when this was made; of `large` folders only the first level is looked at."""

    def __init__(self, *large: str) -> None:
        self._large = large
        self._fresh = dict(self._entries())

    def restore(self) -> tuple[list[str], list[str]]:
        """Remove what is new; return that, and what of the rest differs, which nothing here can undo."""
        now = dict(self._entries())
        new = [path for path in now if path not in self._fresh]
        if now == self._fresh:
            return new, []
        for path in reversed(new):
            _remove(path)
        now = dict(self._entries())
        return new, sorted(path for path in {*now, *self._fresh} if now.get(path) != self._fresh.get(path))

    def _entries(self) -> Iterator[tuple[str, Entry]]:
        """Yield every file and folder, a folder before what is in it."""
        folders = ["/"]
        while folders:
            folder = folders.pop()
            with os.scandir(folder) as found:
                for each in found:
                    if each.path in NOT_THE_CONTAINERS:
                        continue
                    yield each.path, _entry(each)
                    if each.is_dir(follow_symlinks=False) and folder not in self._large:
                        folders.append(each.path)


def end_processes() -> None:
    """Kill what still runs besides init and this process, as the end of a container's first process does.

    A tracker of multiprocessing's resources ends by itself once nothing has its pipe, and removes what was killed with
    its semaphores first.
    """
    deadline = time.monotonic() + ENDS_WITHIN
    while left := _others():
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes that can't be ended: {left}")
        for each in left:
            if not _tracks_resources(each):
                _kill(each)
        time.sleep(0.005)


def _entry(found: os.DirEntry[str]) -> Entry:
    facts = found.stat(follow_symlinks=False)
    regular, link = stat.S_ISREG(facts.st_mode), stat.S_ISLNK(facts.st_mode)
    size, written = (facts.st_size, facts.st_mtime_ns) if regular else (0, 0)
    return Entry(facts.st_mode, facts.st_uid, facts.st_gid, size, written, os.readlink(found.path) if link else "")  # noqa: PTH115


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)  # noqa: PTH108


def _others() -> list[int]:
    """Return the processes besides init and this one that have not ended; init waits for those that have."""
    numbers = [int(each) for each in os.listdir("/proc") if each.isdecimal()]  # noqa: PTH208
    return [each for each in numbers if each not in (INIT, os.getpid()) and _state(each) not in ("", "Z", "X")]


def _state(process: int) -> str:
    try:
        with open(f"/proc/{process}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _tracks_resources(process: int) -> bool:
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:  # noqa: PTH123
            return b"resource_tracker import main" in file.read()
    except OSError:
        return False


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return
