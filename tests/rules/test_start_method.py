"""How the script's workers start, where its text tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.jobs import codes_of, plan_with
from tests.rules.test_deciding_workers import job_of

SPAWNED = "import torch\ntorch.multiprocessing.spawn(print, nprocs=2)\n"
IMPORTED = "import torch.multiprocessing as mp\nmp.spawn(print, nprocs=2)\n"
SET = "import torch.multiprocessing as mp\nmp.set_start_method('forkserver')\n"
LOADER: dict[str, Any] = {"num_workers": 2, "batch_bytes": {"size": "1Mi", "tensors": 1}}


GUARDED = SET.replace("mp.set", "if mp.get_start_method(allow_none=True) is None:\n    mp.set")


@pytest.mark.parametrize("script", [SPAWNED, IMPORTED, SET, GUARDED])
def test_a_method_that_the_plan_does_not_assume_is_said(tmp_path: Path, script: str) -> None:
    """Of ranks that are spawned, and of workers."""
    assert "TL217" in codes_of(plan_with(tmp_path, **job_of(tmp_path, script, []), data_loader=LOADER))


@pytest.mark.parametrize(
    ("script", "fields"),
    [
        (SPAWNED, {"multiprocessing_context": "spawn"}),
        (SPAWNED, {"multiprocessing_context": "fork"}),
        (SPAWNED, {"num_workers": 0}),
        ("import torch.multiprocessing as mp\nmp.set_start_method('fork')\n", {}),
        ("import subprocess\nspawn = subprocess.run\nspawn(['true'])\n", {}),
        (GUARDED.replace("mp.get_start_method(allow_none=True) is None", "__import__('sys').platform == 'darwin'"), {}),
        ("DataLoader([], num_workers=2, multiprocessing_context='fork')\n" + SPAWNED, {}),
    ],
    ids=[
        "stated",
        "stated otherwise",
        "no workers",
        "as assumed",
        "another spawn",
        "another system",
        "the loader's own",
    ],
)
def test_nothing_is_said_where_it_is_stated_or_no_other(tmp_path: Path, script: str, fields: dict[str, Any]) -> None:
    """The job's own word wins, and so does a loader's."""
    plan = plan_with(tmp_path, **job_of(tmp_path, script, []), data_loader={**LOADER, **fields})
    assert "TL217" not in codes_of(plan)
