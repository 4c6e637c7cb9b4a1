"""A script without torch that reports as one does whose loader is timed: what its task asks for, and no more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_TUNED = """
import json, os, sys, time
from trainlaunch_inside.marked import emit
task = json.loads(os.environ["TRAINLAUNCH_TUNE"])
own, given = [0, 2, None, None], task.get("setting")
print("its own words", flush=True)
emit("tune-loader", {loader})
def timed(setting):
    emit("tune-start", {{"setting": setting}})
    {before}
    rate = {rate}
    emit("tune-setting", {{"setting": setting, "rate": rate, "wait_share": 0.5, "batches": 9, "seconds": 1.0}})
timed(given or own)
for workers in task["space"]["workers"][1:] if {in_place} and not given else ():
    timed([workers, 2, None, None])
if {in_place} and not given:
    timed(own)
emit("tune-end", {{"reason": "seconds" if given else "done"}})
{then}
"""
LOADER = {
    "at": "train.py:9",
    "key": "train.py:9 DataLoader",
    "class": "DataLoader",
    "batch_size": 8,
    "setting": [0, 2, None, None],
    "changes_in_place": True,
    "reason": "",
    "cpus": 2.0,
}


def tuning(
    *,
    in_place: bool = True,
    before: str = "pass",
    rate: str = "10.0 + 10 * min(2, setting[0])",
    then: str = "",
    loader: Mapping[str, Any] | None = None,
) -> str:
    """Return the script. `before` is what it does before it tells of a `setting`, `then` what after all."""
    reason = "" if in_place else "the dataset is a stream"
    facts = {**LOADER, "changes_in_place": in_place, "reason": reason, **(loader or {})}
    return _TUNED.format(loader=repr(facts), before=before, rate=rate, in_place=in_place, then=then)


def answered(task: Mapping[str, Any], *, in_place: bool = True) -> list[dict[str, Any]]:
    """Return the records by which a process answers a task that finds two workers the fastest."""
    given, own = task.get("setting"), [0, 2, None, None]
    more = [[each, 2, None, None] for each in task["space"]["workers"][1:]] if in_place else []
    records: list[dict[str, Any]] = [{"kind": "tune-loader", **LOADER, "changes_in_place": in_place}]
    for setting in [given] if given else [own, *more, *([own] if in_place else [])]:
        rate = 10.0 + 10 * min(2, setting[0])
        records += [
            {"kind": "tune-start", "setting": setting},
            {"kind": "tune-setting", "setting": setting, "rate": rate, "wait_share": 0.5},
        ]
    records.append({"kind": "tune-end", "reason": "seconds" if given or not in_place else "done"})
    return [{"rank": 0, "pid": 7, **json.loads(json.dumps(each))} for each in records]
