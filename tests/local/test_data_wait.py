"""What a run on this host says of its waits for data, and the gate for it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Runs
from tests.local.conftest import MakeJob

# What torch has that the notes need; the real one is the subject of bench/data_wait.py.
STAND_IN = """
import time
def get_worker_info(): return None
class _BaseDataLoaderIter:
    def __init__(self): self.left = 3
    def __iter__(self): return self
    def __next__(self):
        time.sleep(0.4)
        self.left -= 1
        if self.left < 0: raise StopIteration
        return self.left
class DataLoader:
    def __iter__(self): return _BaseDataLoaderIter()
"""
TORCH = """
import itertools
class _C:
    class _autograd: _get_sequence_nr = itertools.count().__next__
def is_grad_enabled(): return True
"""
SCRIPT = """
import sys; sys.path.insert(0, {folder!r})
from torch.utils.data import dataloader
for batch in dataloader.DataLoader(): print(batch)
"""
LOADER: dict[str, Any] = {"num_workers": 0, "batch_size": 1, "sample": {"shape": [1], "dtype": "float32"}}


@pytest.fixture
def waiting(tmp_path: Path) -> dict[str, Any]:
    """Return fields of a job that waits for its batches for almost all of its time."""
    module = tmp_path / "torch" / "utils" / "data"
    module.mkdir(parents=True)
    (module / "dataloader.py").write_text(STAND_IN)
    (tmp_path / "torch" / "__init__.py").write_text(TORCH)
    return {"command": ["python3", "-c", SCRIPT.format(folder=str(tmp_path))], "data_loader": LOADER}


def test_the_end_and_status_tell_the_waits(
    trainlaunch: Runs, make_job: MakeJob, waiting: dict[str, Any], job_name: str
) -> None:
    """The page is gone with the run, and what it said is kept; above the gate a good run ends with 1."""
    done = trainlaunch("up", str(make_job(**waiting)), "--max-data-wait", "5%")
    assert done.returncode == 1, done.stderr
    assert "ended with 0 after " in done.stderr
    told = re.search(r", (waited for data \d+\.\d s), ", done.stderr)
    assert told, done.stderr
    assert "--max-data-wait 5%: it waited " in done.stderr
    (container,) = json.loads(trainlaunch("status", job_name, "-o", "json").stdout)["containers"]
    (loader,) = container["data_wait"]["loaders"]
    assert (loader["phase"], loader["batches"]) == ("training", 3)
    assert loader["waited"] >= 1.6
    assert f"data       {told[1]}" in trainlaunch("status", job_name).stdout
    assert not list(Path("/dev/shm").glob(f".trainlaunch-{job_name}-*"))


def test_a_gate_holds_only_what_was_seen(trainlaunch: Runs, make_job: MakeJob, waiting: dict[str, Any]) -> None:
    """Below it, and of what noted nothing, the code stays; a run that may not be looked at is refused."""
    assert trainlaunch("up", str(make_job(**waiting)), "--max-data-wait", "100%").returncode == 0
    unseen = trainlaunch("up", str(make_job(command=["true"], data_loader=LOADER)), "--max-data-wait", "50%")
    assert (unseen.returncode, "judges nothing: no wait for a batch was noted" in unseen.stderr) == (0, True)
    for fields, told in (({"observe": False}, "observe: false"), ({"data_loader": {**LOADER, "inject": "off"}}, "off")):
        refused = trainlaunch("up", str(make_job(**{**waiting, **fields})), "--max-data-wait", "50%")
        assert (refused.returncode, told in refused.stderr) == (2, True), refused.stderr
    off = trainlaunch("up", str(make_job(**{**waiting, "observe": False})))
    assert (off.returncode, "waited for data" in off.stderr) == (0, False)
