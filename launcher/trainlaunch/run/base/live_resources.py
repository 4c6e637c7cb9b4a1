"""What a snapshot of a running container says of its cgroup and of /dev/shm: its lines by their first word, read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from trainlaunch.diagnose.base.container_snapshot import Memory, Shm, ShmUsage

UNLIMITED = 1 << 62  # from which on cgroup v1 means no limit
_FILE = re.compile(r"-\S+ +\d+ +\d+ +\d+ +(?P<size>\d+) +\S+ +\S+ +\S+ (?P<name>.*)$")
_MAP = re.compile(r"(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+) \S+ \S+ \S+ (?P<inode>\d+) +(?P<name>/dev/shm/\S+)")
_MAKER = re.compile(r"torch_(\d+)_")


class Lines(NamedTuple):
    """The lines by their first word, without it."""

    by_word: dict[str, list[str]]

    def of(self, word: str) -> list[str]:
        """Return the lines of a word."""
        return self.by_word.get(word, [])

    def by_pid(self, word: str) -> Iterator[tuple[int, str]]:
        """Yield the lines of a word whose second word is a pid, with it."""
        for line in self.of(word):
            pid, _, rest = line.partition(" ")
            if pid.isdigit():
                yield int(pid), rest


def inner_pids(lines: Lines) -> dict[int, int]:
    """Return each process's pid as its container sees it: what the job's own log and files in /dev/shm name."""
    return {
        pid: int(words.split()[-1]) for pid, words in lines.by_pid("status") if re.match(r"NSpid:[\s\d]+\d$", words)
    }


def whole(text: str) -> int | None:
    """Return a whole number, None for anything else."""
    return int(text) if text.strip().isdigit() else None


def real(text: str) -> float | None:
    """Return a number, None for anything else."""
    try:
        return float(text)
    except ValueError:
        return None


def read_memory(lines: Lines) -> Memory | None:
    """Return the memory of a cgroup, v1 or v2; None where nothing of it was to be read."""
    found = _groups(lines)
    limit = _limit(found.get("memory.max", found.get("memory.limit_in_bytes", "")))
    used = whole(found.get("memory.current", found.get("memory.usage_in_bytes", "")))
    pairs = (each.partition(" ") for each in lines.of("memory"))
    stat = {name: int(value) for name, _, value in pairs if value.isdigit()}
    if used is None and not stat:
        return None
    shmem = stat.get("total_shmem", stat.get("shmem"))
    cache = stat.get("file", stat.get("total_cache", stat.get("cache")))
    anon = stat.get("anon", stat.get("total_rss", stat.get("rss")))
    return Memory(limit, used, anon, shmem, None if cache is None else max(cache - (shmem or 0), 0))


def read_quota(lines: Lines) -> float | None:
    """Return how many CPUs a cgroup may use; None without a limit."""
    found = _groups(lines)
    quota, _, period = found.get("cpu.max", "").partition(" ")
    quota, period = quota or found.get("cpu.cfs_quota_us", ""), period or found.get("cpu.cfs_period_us", "")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def read_throttled(lines: Lines) -> tuple[int, int] | None:
    """Return in how many of how many periods between both moments the quota was used up; None without one."""
    counts: dict[str, dict[str, int]] = {}
    for line in lines.of("throttled"):
        words = line.split()
        if len(words) == 3 and words[2].isdigit():
            counts.setdefault(words[0], {})[words[1]] = int(words[2])
    first, last = counts.get("a", {}), counts.get("b", {})
    keys = ("nr_throttled", "nr_periods")
    if not all(key in each for key in keys for each in (first, last)):
        return None
    throttled, periods = (last[key] - first[key] for key in keys)
    return (throttled, periods) if periods > 0 else None


def read_pids(lines: Lines) -> tuple[int, int | None] | None:
    """Return how many processes and threads there are, and may be (None: any); None where nobody could see it."""
    found = _groups(lines)
    now = whole(found.get("pids.current", ""))
    return None if now is None else (now, _limit(found.get("pids.max", "")))


def _groups(lines: Lines) -> dict[str, str]:
    return {name: value for name, _, value in (each.partition(" ") for each in lines.of("cg"))}


def _limit(text: str) -> int | None:
    """Return a cgroup's limit; None where there is none."""
    found = whole(text)
    return None if found is None or found >= UNLIMITED else found


def read_shm(lines: Lines) -> Shm | None:
    """Return /dev/shm; None where its size was not to be read."""
    words = next(iter(lines.of("shm")), "").split()
    if len(words) != 4 or not all(each.isdigit() for each in words[1:]):
        return None
    block, blocks, free = map(int, words[1:])
    held = sorted(_held(lines), key=lambda each: -each.size)
    return Shm(block * blocks, block * (blocks - free), tuple(held))


def _held(lines: Lines) -> Iterator[ShmUsage]:
    """Yield the bytes of each kind: files that have a name, and those that only a process still has."""
    sizes: dict[str, dict[str, int]] = {}
    pids: dict[str, set[int]] = {}
    for line in lines.of("file"):
        if found := _FILE.match(line):
            sizes.setdefault(_kind(found["name"]), {})[found["name"]] = int(found["size"])
    named = {name for each in sizes.values() for name in each}
    inner = inner_pids(lines)
    lengths: dict[str, dict[tuple[int, str], int]] = {}
    for pid, line in lines.by_pid("map"):
        if found := _MAP.match(line):
            name = found["name"].removeprefix("/dev/shm/")
            kind = _kind(name)
            pids.setdefault(kind, set()).add(int(maker[1]) if (maker := _MAKER.match(name)) else inner.get(pid, pid))
            key = found["inode"] if name not in named else name
            of_pid = lengths.setdefault(f"{kind}\0{key}", {})
            of_pid[pid, name] = of_pid.get((pid, name), 0) + int(found["end"], 16) - int(found["start"], 16)
    for key, of_pid in lengths.items():
        kind, _, inode = key.partition("\0")
        sizes.setdefault(kind, {}).setdefault(inode, max(of_pid.values()))
    for kind, each in sizes.items():
        yield ShmUsage(kind, sum(each.values()), tuple(sorted(pids.get(kind, ()))))


def _kind(name: str) -> str:
    """Return whose a file in /dev/shm is, by its name."""
    kinds = {"torch_": "torch", "nccl-": "NCCL", "sem.": "semaphores", "psm_": "multiprocessing.shared_memory"}
    kinds |= {"plasma": "Ray", ".trainlaunch": "trainlaunch", "__KMP": "OpenMP", "cuda.shm": "CUDA"}
    return next((kind for start, kind in kinds.items() if name.startswith(start)), "others")
