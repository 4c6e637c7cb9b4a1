"""This host as a job would find it: engine, GPUs, /dev/shm, limits, cluster, by the checks that `up` makes."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import LaunchError
from trainlaunch.least_shm import LEAST_SHM
from trainlaunch.run.base.host_gpus import gpu_nodes
from trainlaunch.run.docker.checks import (
    INSTALL_TOOLKIT,
    enforces,
    has_gpu_runtime,
    shares_this_host,
    unenforced_limits,
)
from trainlaunch.run.docker.client import Engine, find_endpoint
from trainlaunch.run.kubernetes.kubeconfig import configured, find_access
from trainlaunch.run.local.process_spec import host_memory
from trainlaunch.units import human_size

SHM = Path("/dev/shm")
DRIVER = Path("/proc/driver/nvidia/version")
MIN_FILES = 4096  # of the hard limit; each tensor that a worker shares costs one
NO_GPU, NO_SHM, NO_FILES = "TL505", "TL628", "TL607"


class HostCheck(NamedTuple):
    """One thing that was looked at: what it is, what was seen, and what is wrong with it (None: nothing)."""

    name: str
    seen: str
    wrong: Diagnostic | None = None


def check_host() -> tuple[HostCheck, ...]:
    """Look at this host; nothing is changed, and nothing is raised."""
    return tuple(each for look in (_engine, _gpus, _shm, _files, _memory, _cluster) for each in look())


def _engine() -> Iterator[HostCheck]:
    try:
        engine = Engine(find_endpoint())
        with engine.attempting("ask for its version") as client:
            info: Mapping[str, Any] = client.info()
    except LaunchError as refused:
        yield HostCheck("engine", refused.diagnostics[0].message, refused.diagnostics[0])
        return
    named = "podman" if engine.is_podman else "docker"
    limits = [name for name, key in (("memory", "MemoryLimit"), ("CPUs", "CpuCfsQuota")) if not enforces(info, key)]
    yield HostCheck(
        "engine",
        f"{named} {info.get('ServerVersion', '?')}, cgroup v{info.get('CgroupVersion', '?')}",
        unenforced_limits(limits) if limits else None,
    )
    local = shares_this_host(info, engine.endpoint.socket_path)
    if local and gpu_nodes():
        has = has_gpu_runtime(info, local=local)
        yield HostCheck("GPU runtime", "there" if has else "missing", None if has else _no_runtime())
    engine.close()


def _no_runtime() -> Diagnostic:
    return Diagnostic(
        NO_GPU, ("this host has GPUs, and the engine can't give them to a container"), fix=INSTALL_TOOLKIT
    )


def _gpus() -> Iterator[HostCheck]:
    nodes = gpu_nodes()
    if nodes == 0 and not DRIVER.exists():
        yield HostCheck("GPUs", "none")
        return
    driver = _first_line(DRIVER)
    broken = driver is None and nodes is not None
    wrong = Diagnostic(NO_GPU, "the GPUs' driver is not loaded", fix="run `sudo modprobe nvidia`, then `nvidia-smi`")
    yield HostCheck("GPUs", f"{'some' if nodes is None else nodes}, {driver or 'no driver'}", wrong if broken else None)


def _shm() -> Iterator[HostCheck]:
    if not SHM.is_dir():
        fix = "run `sudo mount -t tmpfs -o mode=1777 tmpfs /dev/shm`"
        yield HostCheck("/dev/shm", "missing", Diagnostic(NO_SHM, "this host has no /dev/shm", fix=fix))
        return
    found = os.statvfs(SHM)
    size, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    files = sum(1 for _ in SHM.iterdir()) if os.access(SHM, os.R_OK) else 0
    wrong = None
    if not os.access(SHM, os.W_OK):
        wrong = Diagnostic("TL629", "this user can't write to /dev/shm", fix="run `sudo chmod 1777 /dev/shm`")
    elif size and free < LEAST_SHM:
        fix = "look with `ls -lS /dev/shm`, and remove what dead jobs left"
        wrong = Diagnostic("TL605", f"/dev/shm has {human_size(free)} free of {human_size(size)}", fix=fix)
    told = f"{human_size(size)}, {human_size(free)} free" if size else "without a limit"
    yield HostCheck("/dev/shm", f"{told}, {files} files", wrong)


def _files() -> Iterator[HostCheck]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = hard != resource.RLIM_INFINITY and hard < MIN_FILES
    fix = "add `* hard nofile 65536` to /etc/security/limits.conf, and log in again"
    wrong = Diagnostic(NO_FILES, f"the hard limit of open files is {hard}", fix=fix) if low else None
    yield HostCheck("open files", f"limit {soft}, at most {hard}", wrong)


def _memory() -> Iterator[HostCheck]:
    total = host_memory()
    version = "v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1"
    cpus = len(os.sched_getaffinity(0))
    yield HostCheck(
        "memory", f"{human_size(total)}, cgroup {version}, {cpus} of {os.cpu_count()} CPUs for this process"
    )


def _cluster() -> Iterator[HostCheck]:
    if not configured():
        yield HostCheck("cluster", "no kubeconfig")
        return
    try:
        access = find_access(None)
    except LaunchError as refused:
        yield HostCheck("cluster", refused.diagnostics[0].message, refused.diagnostics[0])
        return
    yield HostCheck("cluster", f"{access.words}, namespace {access.namespace}")


def _first_line(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").splitlines()[0].strip()
    except (OSError, IndexError):
        return None
