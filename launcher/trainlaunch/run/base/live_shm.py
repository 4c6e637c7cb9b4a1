"""What is in /dev/shm and whose it is: files that have a name, and those that only a process still has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainlaunch.diagnose.base.live_facts import Held, Shm
from trainlaunch.run.base.live_lines import Lines, inner_pids

_FILE = re.compile(r"-\S+ +\d+ +\d+ +\d+ +(?P<size>\d+) +\S+ +\S+ +\S+ (?P<name>.*)$")
_MAP = re.compile(r"(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+) \S+ \S+ \S+ (?P<inode>\d+) +(?P<name>/dev/shm/\S+)")
_MAKER = re.compile(r"torch_(\d+)_")


def read_shm(lines: Lines) -> Shm | None:
    """Return /dev/shm; None where its size was not to be read."""
    words = next(iter(lines.of("shm")), "").split()
    if len(words) != 4 or not all(each.isdigit() for each in words[1:]):
        return None
    block, blocks, free = map(int, words[1:])
    held = sorted(_held(lines), key=lambda each: -each.size)
    return Shm(block * blocks, block * (blocks - free), tuple(held))


def _held(lines: Lines) -> Iterator[Held]:
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
        yield Held(kind, sum(each.values()), tuple(sorted(pids.get(kind, ()))))


def _kind(name: str) -> str:
    """Return whose a file in /dev/shm is, by its name."""
    kinds = {"torch_": "torch", "nccl-": "NCCL", "sem.": "semaphores", "psm_": "multiprocessing.shared_memory"}
    kinds |= {"plasma": "Ray", ".trainlaunch": "trainlaunch", "__KMP": "OpenMP", "cuda.shm": "CUDA"}
    return next((kind for start, kind in kinds.items() if name.startswith(start)), "others")
