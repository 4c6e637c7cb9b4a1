"""First on PYTHONPATH this holds a job's first attempt where it has saved its first checkpoint, until it is killed."""

from __future__ import annotations

import os
import time
from pathlib import Path

_replace = Path.replace


def _replace_and_wait(self: Path, target: Path) -> Path:
    replaced = _replace(self, target)
    if target.name == "checkpoint.pt" and os.environ.get("TRAINLAUNCH_ATTEMPT") == "1":
        print("saved its first checkpoint", flush=True)
        time.sleep(600)
    return replaced


Path.replace = _replace_and_wait  # type: ignore[method-assign,assignment]
