"""Reads what templates/live.sh prints of processes into the facts of a look."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from trainlaunch.diagnose.base.live_facts import Gpu, Look, Process
from trainlaunch.diagnose.base.tracebacks import Frame
from trainlaunch.run.base.live_cgroup import read_memory, read_pids, read_quota, read_throttled
from trainlaunch.run.base.live_lines import Lines, inner_pids, real
from trainlaunch.run.base.live_shm import read_shm
from trainlaunch.run.base.live_stacks import read_stacks
from trainlaunch.units import MIB

TICKS = 100.0  # of /proc/PID/stat a second, on every Linux that PyTorch runs on
_STAT = re.compile(r"(?P<pid>\d+) \((?P<name>.*)\) (?P<state>\S) (?P<rest>[-\d ]+)$", re.DOTALL)
_PARENT, _UTIME, _STIME, _THREADS = 0, 10, 11, 16  # of /proc/PID/stat after the state
_FUTEX, _SLEEP, _POLL = "futex", "nanosleep", "poll"
# Numbers of /proc/PID/syscall, for kernels that hide wchan: x86-64, then AArch64.
_CALLS = {"202": _FUTEX, "98": _FUTEX, "230": _SLEEP, "35": _SLEEP, "115": _SLEEP, "7": _POLL, "232": _POLL}


def read_look(text: str) -> Look | None:
    """Return what a whole output says; None where it did not come to its end."""
    lines, dumps = _split(text)
    moments = [each.split() for each in lines.of("moment")]
    if "end" not in lines.by_word or len(moments) != 2:
        return None
    seconds = max(float(moments[1][1]) - float(moments[0][1]), 0.01)
    now = real(moments[1][2])
    stacks, refused = read_stacks(dumps)
    why = "py-spy is not installed" if "nospy" in lines.by_word else refused
    return Look(
        seconds,
        tuple(_processes(lines, seconds, now, stacks)),
        read_shm(lines),
        read_memory(lines),
        read_quota(lines),
        read_throttled(lines),
        tuple(_gpus(lines)),
        read_pids(lines),
        "" if stacks else why,
    )


def _split(text: str) -> tuple[Lines, dict[int, str]]:
    """Return the lines, and what py-spy printed of each process."""
    found: dict[str, list[str]] = {}
    dumps: dict[int, str] = {}
    spied: list[str] | None = None
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "spy" and rest.isdigit():
            spied = []
        elif word == "spied" and rest.isdigit() and spied is not None:
            dumps[int(rest)], spied = "\n".join(spied), None
        elif spied is not None:
            spied.append(line)
        else:
            found.setdefault(word, []).append(rest)
    return Lines(found), dumps


def _processes(
    lines: Lines, seconds: float, now: float | None, stacks: dict[int, tuple[Frame, ...]]
) -> Iterator[Process]:
    before = {each.pid: each for each in _samples(lines) if each.moment == "a"}
    waits = {pid: words for pid, words in lines.by_pid("wchan") if words not in {"", "0"}}
    calls = {pid: _CALLS.get(number, "") for pid, number in lines.by_pid("syscall")}
    files = {pid: int(count) for pid, count in lines.by_pid("fds") if count.isdigit()}
    limits = {pid: words.split()[3] for pid, words in lines.by_pid("limit") if len(words.split()) > 4}
    ranks = _variables(lines)
    cpus = {pid: _cpus(words) for pid, words in lines.by_pid("status") if words.startswith("Cpus_allowed_list:")}
    inner = inner_pids(lines)
    for moment, pid, ran, delay, stat in _samples(lines):
        if moment != "b" or (inner and pid not in inner):  # it ended during the look
            continue
        fields, first = stat["rest"].split(), before.get(pid)
        known = ranks.get(pid, {})
        most = limits.get(pid, "")
        yield Process(
            pid=inner.get(pid, pid),
            parent=inner.get(int(fields[_PARENT]), 0 if inner else int(fields[_PARENT])),
            name=stat["name"],
            state=stat["state"],
            threads=int(fields[_THREADS]),
            cpu=None if first is None else (_ticks(stat) - _ticks(first.stat)) / TICKS / seconds,
            starved=_share(first.delay if first else None, delay, seconds),
            asleep=None if ran is None or now is None or stat["state"] == "R" else max(now - ran, 0.0) / 1000,
            kernel=waits.get(pid) or calls.get(pid, ""),
            open_files=files.get(pid),
            most_files=int(most) if most.isdigit() else None,
            rank=known.get("RANK"),
            local_rank=known.get("LOCAL_RANK"),
            local_world=known.get("LOCAL_WORLD_SIZE"),
            cpus=cpus.get(pid),
            stack=stacks.get(pid, ()),
        )


class _Sample(NamedTuple):
    """One process at a moment: when its main thread last ran, in ms, how long in all it waited to, in ns; its stat."""

    moment: str
    pid: int
    ran: float | None
    delay: float | None
    stat: re.Match[str]


def _samples(lines: Lines) -> Iterator[_Sample]:
    for line in lines.of("at"):
        parts = line.split(" ", 4)
        stat = _STAT.match(parts[4]) if len(parts) == 5 else None
        if stat is not None and parts[1].isdigit():
            yield _Sample(parts[0], int(parts[1]), real(parts[2]), real(parts[3]), stat)


def _share(before: float | None, after: float | None, seconds: float) -> float | None:
    return None if before is None or after is None else min((after - before) / 1e9 / seconds, 1.0)


def _ticks(stat: re.Match[str]) -> int:
    fields = stat["rest"].split()
    return int(fields[_UTIME]) + int(fields[_STIME])


def _variables(lines: Lines) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = {}
    for pid, words in lines.by_pid("env"):
        name, _, value = words.partition("=")
        if value.isdigit():
            found.setdefault(pid, {})[name] = int(value)
    return found


def _cpus(words: str) -> int:
    """Return how many CPUs a list as `Cpus_allowed_list: 0-3,8` has."""
    spans = re.findall(r"(\d+)(?:-(\d+))?", words.partition(":")[2])
    return sum(int(last or first) - int(first) + 1 for first, last in spans)


def _gpus(lines: Lines) -> Iterator[Gpu]:
    """Yield each GPU, as busy as both moments say on the average."""
    rows = [[each.strip() for each in line.partition(" ")[2].split(",")] for line in lines.of("gpu")]
    whole = [row for row in rows if len(row) == 5 and all(real(each) is not None for each in row[2:])]
    for uuid in dict.fromkeys(row[0] for row in whole):
        same = [row for row in whole if row[0] == uuid]
        busy = sum(float(row[2]) for row in same) / len(same)
        yield Gpu(same[-1][1], busy, int(float(same[-1][3])) * MIB, int(float(same[-1][4])) * MIB)
