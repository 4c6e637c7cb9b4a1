"""Counters of this process, its workers, its cgroup and its GPU: CPU time, throttling, bytes read, /dev/shm."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

SHM = "/dev/shm"
CGROUP = "/sys/fs/cgroup"
_TICK = os.sysconf("SC_CLK_TCK")
_NS = 1e9
_US = 1e6
_LIBRARY = "libnvidia-ml.so.1"
_NVIDIA = "{:08X}:{:02X}:{:02X}.0"  # as nvmlPciInfo_t.busId has it
_AMD = "/sys/bus/pci/devices/{:04x}:{:02x}:{:02x}.0/gpu_busy_percent"


class Counters(NamedTuple):
    """Totals since some beginning: seconds of CPU, periods of the quota and bytes; None where nothing counts them.

    `queued` are seconds that this process and its workers could have run and had no CPU. `cpu` is that of the job (of
    the cgroup where it is this job's alone), `worker_cpu` that of worker processes. `read` are bytes that workers, or
    without some the process itself, have read from anything.
    """

    clock: float
    queued: float
    cpu: float
    worker_cpu: float
    periods: int | None
    throttled: int | None
    throttled_seconds: float | None
    read: int | None


def counters(workers: Iterable[int], *, own_cgroup: bool) -> Counters:
    """Read all counters; `workers` are the pids of the worker processes that are alive."""
    alive = list(workers)
    times = os.times()
    of_workers = times.children_user + times.children_system + sum(map(_cpu_of, alive))
    cpu = times.user + times.system + of_workers
    whole = _cgroup_cpu() if own_cgroup else None
    stat = _numbers(_first_of("cpu.stat") or _v1("cpu.stat"))
    return Counters(
        clock=time.monotonic(),
        queued=sum(map(_queued, (os.getpid(), *alive))),
        cpu=cpu if whole is None else whole,
        worker_cpu=of_workers,
        periods=stat.get("nr_periods"),
        throttled=stat.get("nr_throttled"),
        throttled_seconds=_throttled_seconds(stat),
        read=_read_by(alive or [os.getpid()]),
    )


def shm_used() -> int:
    """Return the bytes in /dev/shm now, of whomever; 0 where there is none."""
    try:
        found = os.statvfs(SHM)
    except OSError:
        return 0
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def usable_cpus() -> float:
    """Return the CPUs that affinity, an allocation of Slurm and the quota leave this process, as the preflight does."""
    there = float(len(os.sched_getaffinity(0)))
    allocated = os.environ.get("TRAINLAUNCH_CPUS", "")
    if allocated.isdecimal() and int(allocated):
        there = min(there, float(allocated))
    quota, _, period = (_first_of("cpu.max").strip() or _v1("cpu.cfs_quota_us").strip()).partition(" ")
    period = period or _v1("cpu.cfs_period_us").strip()
    if not (quota.isdigit() and period.isdigit() and int(quota) and int(period)):
        return there
    return min(there, int(quota) / int(period))


def _cpu_of(pid: int) -> float:
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK if len(fields) > 12 else 0.0


def _queued(pid: int) -> float:
    fields = _text(f"/proc/{pid}/schedstat").split()
    return int(fields[1]) / _NS if len(fields) > 2 else 0.0


def _read_by(pids: list[int]) -> int | None:
    totals = []
    for pid in pids:
        lines = dict(line.split(": ") for line in _text(f"/proc/{pid}/io").splitlines() if ": " in line)
        if "rchar" not in lines:
            return None
        totals.append(int(lines["rchar"]))
    return sum(totals)


def _cgroup_cpu() -> float | None:
    """Return the CPU seconds of the cgroup, of version 2 or 1; None where it has no counter."""
    found = _numbers(_first_of("cpu.stat")).get("usage_usec")
    if found is not None:
        return found / _US
    old = _text(CGROUP + "/cpuacct/cpuacct.usage") or _text(CGROUP + "/cpu,cpuacct/cpuacct.usage")
    return int(old) / _NS if old.strip().isdigit() else None


def _throttled_seconds(stat: dict[str, int]) -> float | None:
    if "throttled_usec" in stat:
        return stat["throttled_usec"] / _US
    return stat["throttled_time"] / _NS if "throttled_time" in stat else None


def _first_of(name: str) -> str:
    return _text(f"{CGROUP}/{name}")


def _v1(name: str) -> str:
    return _text(f"{CGROUP}/cpu/{name}") or _text(f"{CGROUP}/cpu,cpuacct/{name}")


def _numbers(text: str) -> dict[str, int]:
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


def busy_reader() -> Callable[[], int | None] | None:
    """Return a function that reads how many percent of the driver's last period, a second at most, the GPU was busy.

    None without a GPU that this process already uses, or where its driver doesn't tell: a MIG instance, an old torch.
    """
    import torch

    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):
        return None
    try:
        facts = torch.cuda.get_device_properties(torch.cuda.current_device())
        place = (facts.pci_domain_id, facts.pci_bus_id, facts.pci_device_id)
        return _by_file(_AMD.format(*place)) if torch.version.hip else _by_library(_NVIDIA.format(*place))
    except Exception:
        return None


def _by_file(path: str) -> Callable[[], int | None] | None:
    def read() -> int | None:
        try:
            with open(path, encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):
            return None

    return read if read() is not None else None


def _by_library(bus: str) -> Callable[[], int | None] | None:
    library: Any = ctypes.CDLL(_LIBRARY)
    device, found = ctypes.c_void_p(), _Utilization()
    if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByPciBusId_v2(bus.encode(), ctypes.byref(device)):
        return None

    def read() -> int | None:
        failed = library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(found))
        return None if failed else int(found.gpu)

    return read if read() is not None else None


def synchronize() -> None:
    """Wait for all that the GPU was given, so that a time measured around it is its own."""
    import torch

    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
