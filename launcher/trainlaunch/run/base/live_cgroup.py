"""The limits and counters of a cgroup, of either version."""

from __future__ import annotations

from trainlaunch.diagnose.base.live_facts import Memory
from trainlaunch.run.base.live_lines import Lines, whole

UNLIMITED = 1 << 62  # from which on cgroup v1 means no limit


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
