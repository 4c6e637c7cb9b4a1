"""The script that a command names, where it lies beside the text that has the command: what it shows at a glance.

It is searched for words and never parsed or run, from the text's folder up to the repository's root and no further.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from trainlaunch.repository.regular_files import read_regular
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.units import MIB

_TORCH = re.compile(
    r"^[ \t]*(?:import|from) (?:torch|lightning|pytorch_lightning|transformers|accelerate)\b", re.MULTILINE
)
_TRAINS = re.compile(r"\.backward\(|\boptimizer\w*\.step\(|\bTrainer\(|\.train\(\)|\btrainer\.fit\(")
_SERVES = re.compile(
    r"\b(?:FastAPI|Flask|Sanic|Starlette)\(|\buvicorn\.run\(|\bgr\.(?:Blocks|Interface)\(|\bgrpc\.server\(|HTTPServer\("
)
_LOADER = re.compile(r"\bDataLoader\(")
_WORKERS = re.compile(r"\bnum_workers\b[\"']?[ ]?[=:,][ ]?(?:type=int,[ ]?)?(?:default=)?([\w.()]+)")
_ANY_WORKERS = re.compile(r"workers", re.IGNORECASE)
_DEEPEST = 6  # folders above a text that are looked into


class NearScript(NamedTuple):
    """What a script's text shows: `trains` or `serves`, and `workers` of its loaders, None where it doesn't say."""

    trains: bool
    serves: bool
    workers: int | None


@functools.lru_cache(maxsize=1024)
def near_script(text: str, script: str) -> NearScript | None:
    """Return what the script shows that a command of the file `text` names; None where it isn't there."""
    if text in {"-", ""} or not script.endswith(".py") or "$" in script:
        return None
    parts = PurePosixPath(script).parts
    endings = [Path(*parts[index:]) for index in range(len(parts)) if parts[index] not in {"/", ".", ".."}]
    for folder in [*Path(text).absolute().parents][:_DEEPEST]:
        for ending in endings[:4]:
            if (folder / ending).is_file():
                return _read(folder / ending, Path(text))
        if (folder / ".git").exists():
            break
    return None


def _read(path: Path, named_by: Path) -> NearScript | None:
    if not ITS_OWN.holds(path, named_by):
        return None
    try:
        text = read_regular(path, MIB).decode(errors="replace")
    except (OSError, ValueError):
        return None
    torch = _TORCH.search(text) is not None
    return NearScript(torch and _TRAINS.search(text) is not None, _SERVES.search(text) is not None, _workers(text))


def _workers(text: str) -> int | None:
    """Return the most workers that a script states by a number, 0 where it has loaders and names no workers."""
    if not _LOADER.search(text):
        return None
    if not _ANY_WORKERS.search(text):
        return 0
    stated = [match[1] for match in _WORKERS.finditer(text)]
    numbers = [int(each) for each in stated if each.isdecimal()]
    return max(numbers) if numbers and len(numbers) == len(stated) else None
