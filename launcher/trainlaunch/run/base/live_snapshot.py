"""Looks at the processes of a running container, from this host where it may, else by a command inside.

Nothing is changed and no signal is sent: any but one that the job itself handles could end it. What templates/live.sh
prints is read into the facts of a snapshot, stacks as py-spy prints them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot, Gpu, Process
from trainlaunch.diagnose.base.log_facts import Frame
from trainlaunch.run.base.backend import ContainerInfo
from trainlaunch.run.base.live_resources import (
    Lines,
    inner_pids,
    read_memory,
    read_pids,
    read_quota,
    read_shm,
    read_throttled,
    real,
)
from trainlaunch.templating.environment import constant_text
from trainlaunch.units import MIB

SECONDS = 90  # a look takes two, and up to ten for each stack of a process that doesn't let itself be read
TICKS = 100.0  # of /proc/PID/stat a second, on every Linux that PyTorch runs on
_STAT = re.compile(r"(?P<pid>\d+) \((?P<name>.*)\) (?P<state>\S) (?P<rest>[-\d ]+)$", re.DOTALL)
_PARENT, _UTIME, _STIME, _THREADS = 0, 10, 11, 16  # of /proc/PID/stat after the state
_FUTEX, _SLEEP, _POLL = "futex", "nanosleep", "poll"
# Numbers of /proc/PID/syscall, for kernels that hide wchan: x86-64, then AArch64.
_CALLS = {"202": _FUTEX, "98": _FUTEX, "230": _SLEEP, "35": _SLEEP, "115": _SLEEP, "7": _POLL, "232": _POLL}
FRAMES = 64


def command(root: str = "/", pids: Iterable[int] = ()) -> list[str]:
    """Return the argv that prints a look, at `root`'s /dev/shm and cgroup; without pids at all around it."""
    return ["/bin/sh", "-c", constant_text("live.sh"), "sh", root, *map(str, pids)]


def look_here(root: str, pids: Iterable[int]) -> ContainerSnapshot | None:
    """Look at processes of this host; None where it can't be done. `root` is / for the host's own files."""
    path = f"{os.environ.get('PATH', '')}:{Path(sys.executable).parent}"  # py-spy may be installed beside us
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            command(root, pids),
            env={"PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        return read_snapshot(done.stdout.decode(errors="replace"))
    return None


def look_at(container: ContainerInfo, proc: Path, execute: Callable[[list[str]], str]) -> ContainerSnapshot | None:
    """Look at an engine's container through the host's /proc where we may, else by `execute`, a command inside."""
    pids = _host_pids(container, proc)
    if pids:
        return look_here(str(proc / str(container.pid) / "root"), pids)
    return read_snapshot(execute(command()))


def _host_pids(container: ContainerInfo, proc: Path) -> list[int]:
    """Return the pids of a container's processes on this host; none where they are not here, or not ours to see.

    The cgroup must name the container: on a remote engine, or one in a virtual machine, the pid is another process.
    """
    home = proc / str(container.pid)
    try:
        if not container.pid or container.id not in (home / "cgroup").read_text():
            return []
        os.statvfs(home / "root/dev/shm")
        return sorted(_pids_of(container.id, proc))
    except OSError:
        return []


def _pids_of(container: str, proc: Path) -> Iterator[int]:
    for each in proc.iterdir():
        if each.name.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                if container in (each / "cgroup").read_text():
                    yield int(each.name)


def read_snapshot(text: str) -> ContainerSnapshot | None:
    """Return what a whole output says; None where it did not come to its end."""
    lines, dumps = _split(text)
    moments = [each.split() for each in lines.of("moment")]
    if "end" not in lines.by_word or len(moments) != 2:
        return None
    seconds = max(float(moments[1][1]) - float(moments[0][1]), 0.01)
    now = real(moments[1][2])
    stacks, refused = read_stacks(dumps)
    why = "py-spy is not installed" if "nospy" in lines.by_word else refused
    return ContainerSnapshot(
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


def read_stacks(dumps: dict[int, str]) -> tuple[dict[int, tuple[Frame, ...]], str]:
    """Return the main threads' stacks by pid, and py-spy's reason where it gave none."""
    found: dict[int, tuple[Frame, ...]] = {}
    refused = ""
    for pid, dump in dumps.items():
        try:
            threads = json.loads(dump)
        except ValueError:
            refused = next((each for each in dump.splitlines() if each.strip()), "it printed nothing")
            continue
        main = next((each for each in _mappings(threads) if each.get("os_thread_id") in {pid, None}), None)
        main = main or next((each for each in _mappings(threads) if each.get("thread_name") == "MainThread"), None)
        found[pid] = tuple(_frames(main.get("frames") or ())) if main else ()
    return {pid: stack for pid, stack in found.items() if stack}, f"py-spy: {refused}" if refused else ""


def _frames(frames: Iterable[Any]) -> Iterator[Frame]:
    for each in _mappings(list(frames)[:FRAMES]):
        name = str(each.get("name", "")).rpartition(".")[2]  # newer ones say in which class, older ones don't
        yield Frame(str(each.get("filename", "")), int(each.get("line") or 0), name)


def _mappings(values: Any) -> list[dict[str, Any]]:
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []
