"""Runs checks of probe on many loaders in one container: each case is a loader of a script that `CASES` names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.inside.conftest import Inner

IMPORTS = """
import itertools, json, multiprocessing, random, struct, sys, time
import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler, get_worker_info
from torch.utils.data import default_collate
"""
# Each loader as the probe would know it after a few batches of training; "seen" of a case changes that.
RUN = """
if __name__ == "__main__":
    from trainlaunch_inside.probe import checks
    from trainlaunch_inside.probe.base.loader_stats import LoaderStats

    told = {}
    for name, loader, known in CASES:
        seen = LoaderStats(0, loader, "train.py:1")
        seen.order, seen.trained, seen.iterators, seen.passes = 0, 4, 1, [4]
        vars(seen).update(known)
        functions = [next(each.load() for each in checks.CHECKS if each.defect == defect) for defect in DEFECTS]
        told[name] = [list(function(seen)) for function in functions]
    print("TOLD" + json.dumps(told))
"""
Told = Mapping[str, list[list[dict[str, Any]]]]


def told(inside: Inner, script: str, *defects: str, files: Mapping[str, str] | None = None) -> Told:
    """Return what the check of each defect yields for each of a script's `CASES`, a list of (name, loader, known)."""
    ran = inside(f"{IMPORTS}{script}\nDEFECTS = {list(defects)!r}\n{RUN}", files=files, values={})
    assert ran.code == 0, ran.err
    line = next(each for each in ran.out.splitlines() if each.startswith("TOLD"))
    found: Told = json.loads(line.removeprefix("TOLD"))
    return found
