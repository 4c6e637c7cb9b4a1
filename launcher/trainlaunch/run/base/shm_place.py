"""Who can enlarge the /dev/shm that this process sees: who started its container or its pod, or root of this host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from trainlaunch.units import GIB, MIB, round_up

_OF_ENGINES = ("/.dockerenv", "/run/.containerenv")


def way_to_enlarge(mib: int, env: Mapping[str, str] = os.environ, root: Path = Path("/")) -> str:
    """Return what to type for a /dev/shm of so many MiB, by the place that this process is in."""
    if "KUBERNETES_SERVICE_HOST" in env:
        volume = f"`emptyDir: {{medium: Memory, sizeLimit: {mib}Mi}}`"
        return f"give the pod a volume {volume}, mounted at /dev/shm; it counts toward the container's memory limit"
    if env.get("CODESPACES") == "true" or env.get("REMOTE_CONTAINERS") == "true" or "DEVCONTAINER" in env:
        return f'write `"runArgs": ["--shm-size={mib}m"]` in devcontainer.json, and rebuild the container'
    if _is_container(root):
        return f"start this container with `--shm-size={mib}m` (`shm_size: {mib}m` in a Compose file)"
    if "SLURM_JOB_ID" in env:
        root_runs = f"`mount -o remount,size={mib}m /dev/shm`"
        return f"take fewer tasks for each node, or ask who runs the cluster for {root_runs} on its nodes"
    return f"run `mount -o remount,size={mib}m /dev/shm` as root"


def way_to_have_more(more: int) -> str:
    """Return what to type so that this host's /dev/shm has so many bytes beside those that it has."""
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return way_to_enlarge(more // MIB)
    return way_to_enlarge(round_up(found.f_blocks * found.f_frsize + more, GIB) // MIB)


def _is_container(root: Path) -> bool:
    """Whether an engine made this place: a machine that was made of an image has its files, and a disk as its root."""
    if not any((root / each.lstrip("/")).exists() for each in _OF_ENGINES):
        return False
    try:
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return True
    whole = [line.split() for line in mounts if line.split()[4] == "/"]
    disks = [fields[3] == "/" and fields[fields.index("-") + 2].startswith("/dev/") for fields in whole]
    return not (disks and disks[-1])
