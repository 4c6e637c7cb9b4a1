"""What the parts share in a process."""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module
from typing import Any


def install() -> None:
    """Install the parts that TRAINLAUNCH_INSIDE names."""
    for part in os.environ.get("TRAINLAUNCH_INSIDE", "").split():
        try:
            import_module("trainlaunch.inside." + part).install()
        except Exception as problem:
            off(part, problem)


def off(part: str, problem: Exception) -> None:
    """Say why a part is off."""
    say(f"{part} is off in process {os.getpid()}: {type(problem).__name__}: {' '.join(str(problem).split())}")


def say(text: str) -> None:
    """Write a line to standard error, where there is one."""
    with contextlib.suppress(Exception):
        sys.stderr.write(f"trainlaunch: {text}\n")
        sys.stderr.flush()


def rank() -> int:
    """Return the rank that the launcher tells, else torch's own."""
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "LOCAL_RANK"):
        text = os.environ.get(name, "")
        if text.isdecimal() and len(text) < 10:
            return int(text)
    torch: Any = sys.modules.get("torch.distributed")
    return int(torch.get_rank()) if torch and torch.is_available() and torch.is_initialized() else 0
