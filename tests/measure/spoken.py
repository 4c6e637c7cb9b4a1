"""What the processes of a probed job report, as tests make it up."""

from __future__ import annotations

import json
from typing import Any

_REPORTS = """
import json, os, sys, time
from trainlaunch_inside.marked import emit
def say(record):
    record = dict(record)
    emit(record.pop("kind"), record)
print("trained", file=sys.stderr, flush=True)  # the records' stream: on the other it may come after all is known
for record in json.loads({records!r}):
    say(record)
{then}
"""


def reporting(*records: dict[str, Any], then: str = "") -> str:
    """Return a script without torch that reports as the part inside does, then does as `then` says."""
    return _REPORTS.format(records=json.dumps(records), then=then)


def spoken(*records: dict[str, Any]) -> str:
    """Return records as trainlaunch.inside.marked writes them, each in one chunk."""
    return "".join(f"\x1etrainlaunch t-{at} 1/1 {json.dumps(each)}\x1f\n" for at, each in enumerate(records))


def a_loader(number: int = 0, *, rank: int = 0, pid: int = 7, **facts: Any) -> list[dict[str, Any]]:
    """Return the records of one loader; `facts` replace those of either record."""
    who = {"rank": rank, "pid": pid, "loader": number}
    built = {
        "at": f"train.py:{48 + number}",
        "class": "torch.utils.data.DataLoader",
        "order": number,
        "trains": number == 0,
        "batch_size": 32,
        "num_workers": 2,
        "prefetch_factor": 2,
        "persistent_workers": False,
        "pin_memory": False,
        "start_method": "fork",
        "epoch_batches": None,
    }
    batches = {
        "count": 32,
        "storages": [3 << 20, 512],
        "largest_bytes": (3 << 20) + 512,
        "median_bytes": (3 << 20) + 512,
        "batches_held": 2,
        "batches_kept": None,
        "fetch_seconds": 0.01,
        "collate_seconds": 0.002,
        "wait_seconds": 0.001,
        "step_seconds": 0.2,
        "together_with": [],
        "whole_epochs": 1,
        "ended": 1,
        "problem": None,
    }
    return [
        {"kind": "loader", **who, **{name: facts.get(name, value) for name, value in built.items()}},
        {"kind": "batches", **who, **{name: facts.get(name, value) for name, value in batches.items()}},
        {"kind": "dataset", **who, "tensor_bytes": facts.get("tensor_bytes", 0)},
    ]


def a_probe(*loaders: list[dict[str, Any]], rank: int = 0, pid: int = 7) -> list[dict[str, Any]]:
    """Return the records of one process: its start, its loaders (one where none are given), its end."""
    who = {"rank": rank, "pid": pid}
    start = {"kind": "start", **who, "python": "3.11.7", "torch": "2.9.1", "world": 1, "start_method": "fork"}
    end = {"kind": "end", **who, "reason": "batches", "seconds": 4.2, "checks_seconds": 0.5}
    return [start, *(each for loader in (loaders or (a_loader(rank=rank, pid=pid),)) for each in loader), end]
