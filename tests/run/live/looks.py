"""Texts as templates/live.sh prints them: of cgroup v2, of cgroup v1, with GPUs, with stacks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

LOADER = "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py"
LOOP = ("_worker_loop", "/usr/lib/python3/dist-packages/torch/utils/data/_utils/worker.py", 334)
FETCH = ("fetch", "/usr/lib/python3/dist-packages/torch/utils/data/_utils/fetch.py", 54)
GET = ("poll", "/usr/lib/python3.11/multiprocessing/connection.py", 256)
FORK = ("_launch", "/usr/lib/python3.11/multiprocessing/popen_fork.py", 71)
WAITS = (("_try_get_data", LOADER, 1291), ("<module>", "/w/train.py", 31))
IN_SAMPLE = (("D.__getitem__", "/w/data.py", 41), FETCH, LOOP, FORK, ("<module>", "/w/train.py", 31))
NO_WORK = (GET, LOOP, FORK, ("<module>", "/w/train.py", 31))
V2 = """\
cg memory.max 4294967296
cg memory.current 2147483648
cg cpu.max 200000 100000
cg pids.max 100
cg pids.current 9
memory anon 1073741824
memory file 805306368
memory shmem 536870912
throttled a nr_periods 10
throttled a nr_throttled 2
throttled b nr_periods 20
throttled b nr_throttled 11
"""
V1 = """\
cg memory.limit_in_bytes 9223372036854771712
cg memory.usage_in_bytes 2147483648
cg cpu.cfs_quota_us -1
cg cpu.cfs_period_us 100000
cg pids.max max
cg pids.current 9
memory cache 1
memory rss 1
memory total_cache 805306368
memory total_rss 1073741824
memory total_shmem 536870912
"""
SHM = "shm tmpfs 4096 16384 8192\n"
GPU = "gpu a GPU-1, 0, 20, 8192, 81920\ngpu b GPU-1, 0, 38, 8192, 81920\n"


class Proc(NamedTuple):
    """A process of a text: CPU ticks in the look's second, ms since it last ran, ms that it waited for a CPU."""

    pid: int
    parent: int = 1
    name: str = "python3"
    state: str = "S"
    ticks: int = 0
    ran: float = 100.0
    starved: float = 0.0
    kernel: str = "poll_schedule_timeout"
    stack: Sequence[tuple[str, str, int]] = ()
    env: Sequence[str] = ()


def worker(pid: int, **more: object) -> Proc:
    """Return a DataLoader worker of process 7."""
    return Proc(pid, 7, "pt_data_worker", **more)  # type: ignore[arg-type]


def text(*processes: Proc, more: str = V2 + SHM, spy: bool = True) -> str:
    """Return the whole text of a look of one second."""
    lines = ["moment a 1000.00 1000000.0"]
    lines += [_at("a", each, ticks=0, delay=0.0) for each in processes]
    lines += ["moment b 1001.00 1001000.0"]
    lines += [_at("b", each, ticks=each.ticks, delay=each.starved * 1e6) for each in processes]
    lines += [more.rstrip("\n")]
    for each in processes:
        lines += [f"status {each.pid} NSpid:\t{each.pid}", f"status {each.pid} Cpus_allowed_list:\t0-15"]
        lines += [f"wchan {each.pid} {each.kernel}", f"fds {each.pid} 14"]
        lines += [f"limit {each.pid} Max open files            1024                 4096                 files     "]
        lines += [f"env {each.pid} {one}" for one in each.env]
        lines += [f"spy {each.pid}", *_dump(each).splitlines(), f"spied {each.pid}"] if each.stack else []
    return "\n".join([*lines, *([] if spy else ["nospy"]), "end", ""])


def _at(moment: str, each: Proc, *, ticks: int, delay: float) -> str:
    rest = f"{each.parent} 1 1 0 -1 4194304 0 0 0 0 {100 + ticks} 20 0 0 20 0 3 0 500 0 0"
    return f"at {moment} {each.pid} {1001000.0 - each.ran} {delay:.0f} {each.pid} ({each.name}) {each.state} {rest}"


def _dump(each: Proc) -> str:
    frames = [{"name": name, "filename": file, "line": line} for name, file, line in each.stack]
    other = {"pid": each.pid, "os_thread_id": each.pid + 1000, "thread_name": "QueueFeeder", "frames": []}
    main = {"pid": each.pid, "os_thread_id": each.pid, "thread_name": "MainThread", "frames": frames}
    return json.dumps([other, main], indent=2)
