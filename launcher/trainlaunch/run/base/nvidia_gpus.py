"""What can be known about this host's NVIDIA GPUs without their tools: device nodes, and the ids of the driver."""

from __future__ import annotations

import re
from pathlib import Path

_UUID = re.compile(r"^GPU UUID:\s*(GPU-\S+)", re.MULTILINE)


def gpu_nodes(dev: Path = Path("/dev")) -> int | None:
    """Return how many GPUs have a device node; None on WSL, whose one node /dev/dxg stands for all."""
    if (dev / "dxg").exists():
        return None
    return sum(1 for each in dev.glob("nvidia*") if re.fullmatch(r"nvidia\d+", each.name))


def gpu_uuids(driver: Path = Path("/proc/driver/nvidia/gpus")) -> dict[str, str]:
    """Return the numbers of nvidia-smi and the engines, which follow the bus, by id; empty without a driver."""
    found = {}
    for number, folder in enumerate(sorted(driver.glob("*"))):
        try:
            told = _UUID.search((folder / "information").read_text())
        except OSError:
            continue
        if told:
            found[told[1]] = str(number)
    return found
