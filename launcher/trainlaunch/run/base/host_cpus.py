"""How many CPUs this process may use: by its affinity, the quotas of its cgroup and of those around it, and Slurm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from trainlaunch.run.base.slurm import slurm_task

_CGROUPS = Path("/sys/fs/cgroup")


def cpus_here(root: Path = _CGROUPS, own: Path = Path("/proc/self/cgroup")) -> int:
    """Return whole CPUs, at least 1. A quota that can't be read counts as none."""
    allocated = task.cpus if (task := slurm_task()) else None
    return max(1, int(min([len(os.sched_getaffinity(0)), *([allocated] if allocated else []), *_quotas(root, own)])))


def _quotas(root: Path, own: Path) -> Iterator[float]:
    """Yield the quota of each group on the way from this process's own to the root, in CPUs."""
    for line in _lines(own):
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "cpu" if controllers else root
        group = top / path.lstrip("/")
        for folder in (group, *group.parents):
            yield from _quota(folder, version_1=bool(controllers))
            if folder == top:
                break


def _quota(folder: Path, *, version_1: bool) -> Iterator[float]:
    if version_1:
        words = [*_lines(folder / "cpu.cfs_quota_us"), *_lines(folder / "cpu.cfs_period_us")]
    else:
        words = next(_lines(folder / "cpu.max"), "").split()
    if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal() and int(words[1]):
        yield int(words[0]) / int(words[1])


def _lines(file: Path) -> Iterator[str]:
    try:
        yield from file.read_text().splitlines()
    except OSError:
        return
