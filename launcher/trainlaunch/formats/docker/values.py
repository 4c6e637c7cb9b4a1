"""What the values of single flags say, as docker's command line reads them; None for what it refuses."""

from __future__ import annotations

import re

from trainlaunch.formats.docker.mounts import csv_fields
from trainlaunch.formats.workload import GpuRequest
from trainlaunch.gpu_names import ALL_GPUS

_CPUS = re.compile(r"\+?(\d{1,9})?(?:\.(\d{0,9}))?", re.ASCII)
_ULIMIT = re.compile(r"([a-z]+)=(-?[0-9]{1,18})(?::(-?[0-9]{1,18}))?", re.ASCII)
TRUE, FALSE = frozenset({"1", "t", "T", "TRUE", "true", "True"}), frozenset({"0", "f", "F", "FALSE", "false", "False"})


def cpu_thousandths(text: str) -> int | None:
    """Return thousandths of a CPU: `1.5` is 1500. None for no number, or a part of a thousandth."""
    match = _CPUS.fullmatch(text)
    if not match or not (match[1] or match[2]):
        return None
    fraction = (match[2] or "").rstrip("0")
    return int(match[1] or 0) * 1000 + int(fraction.ljust(3, "0")) if len(fraction) <= 3 else None


def whole_number(text: str) -> int | None:
    """Return an integer, None for anything else."""
    return int(text) if re.fullmatch(r"[-+]?[0-9]{1,18}", text, re.ASCII) else None


def ulimit(text: str) -> tuple[str, int, int] | None:
    """Return name, soft and hard limit: `nofile=1024:2048`, `core=0`."""
    match = _ULIMIT.fullmatch(text)
    return (match[1], int(match[2]), int(match[3] or match[2])) if match else None


def gpu_request(text: str) -> GpuRequest | None:
    """Return what `--gpus` asks for, a CSV record in which a bare number is a count and the last one holds.

    A list of devices that isn't quoted is therefore one id and counts; the engine refuses ids and a count at once.
    """
    try:
        fields = csv_fields(text)
    except ValueError:
        return None
    count: str | None = None
    ids: tuple[str, ...] = ()
    seen: set[str] = set()
    for field in fields:
        if field.value is None:
            count = field.key
            continue
        if field.key in seen or field.key not in {"count", "device", "driver", "capabilities", "options"}:
            return None
        seen.add(field.key)
        if field.key == "count":
            count = field.value
        elif field.key == "device":
            ids = tuple(field.value.split(","))
    if count == ALL_GPUS:
        return GpuRequest(0, ids, all=True)
    number = whole_number(count) if count is not None else 0 if ids else 1
    return None if number is None else GpuRequest(0, ids, all=True) if number == -1 else GpuRequest(number, ids)
