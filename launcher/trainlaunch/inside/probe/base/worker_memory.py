"""Whether more workers fit in the memory that the job may use: checks start their own, and must not end the job."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable

from trainlaunch.inside.probe.base.dataset_memory import enforced_limit

_STATS = ("/sys/fs/cgroup/memory.stat", "/sys/fs/cgroup/memory/memory.stat")
# What no kernel takes back under pressure, as cgroups of version 2 and 1 name it; files' pages it does.
_HELD = ("anon", "shmem", "kernel", "total_rss", "total_shmem", "total_unevictable")
_MIB = 1 << 20
FORKED, IMPORTED = 64 * _MIB, 160 * _MIB  # bytes of a worker that is forked, and of one that imports torch
SPARE = 0.05  # of the limit, for what the script's own processes still take


def require_room(workers: int, running: Iterable[int]) -> None:
    """Raise MemoryError where so many fresh workers may not fit; `running` are pids of the script's own ones.

    Those tell what a worker weighs; without any, one that isn't forked is as heavy as this process.
    """
    if not workers:
        return
    most = enforced_limit()
    free = _free(most)
    need = workers * _weight(running) + FORKED  # the copy of this process that starts them
    if free is not None and need > free - most * SPARE:
        raise MemoryError(
            f"{workers} fresh workers may take {need // _MIB} MiB, and {max(0, free) // _MIB} MiB "
            f"of the {most // _MIB} MiB limit are free"
        )


def _weight(running: Iterable[int]) -> int:
    measured = [size for size in map(_private, running) if size]
    if measured:
        return max(FORKED, *measured)
    forked = (multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]) == "fork"
    return FORKED if forked else max(IMPORTED, _private("self"))


def _private(pid: int | str) -> int:
    """Return the bytes that a process has for itself; 0 where it has ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii", errors="replace") as file:
            sizes = [int(line.split()[1]) for line in file if line.startswith("Private_Dirty:")]
    except OSError:
        return 0
    return sum(sizes) * 1024


def _free(most: int) -> int | None:
    """Return the bytes that are left below the limit; None where nothing tells."""
    for name in _STATS:
        try:
            with open(name, encoding="ascii") as file:
                held = dict(line.split() for line in file)
        except (OSError, ValueError):
            continue
        if any(each in held for each in ("anon", "total_rss")):
            return min(most - sum(int(held.get(each, 0)) for each in _HELD), _available() or most)
    return _available()


def _available() -> int | None:
    """Return what this host has left."""
    with open("/proc/meminfo", encoding="ascii") as file:
        found = [int(line.split()[1]) for line in file if line.startswith("MemAvailable:")]
    return found[0] * 1024 if found else None
