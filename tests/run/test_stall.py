"""`up` on an engine beside a job whose DataLoader hangs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Runs

WATCHED: dict[str, Any] = {
    "stall_after": "2s",
    "start_period": "1s",
    "interval": "1s",
    "retries": 1,
    "on_unhealthy": "stop",
}
LOADER: dict[str, Any] = {"num_workers": 0, "batch_size": 1, "sample": {"shape": [1], "dtype": "float32"}}
# What torch's module has that the heartbeat needs; the real one is the subject of tests/inside.
STAND_IN = """
def get_worker_info(): return None
class _BaseDataLoaderIter:
    def __init__(self): self.count = 0
    def __iter__(self): return self
    def __next__(self):
        import time
        self.count += 1
        if self.count == 4: time.sleep(600)
        return self.count - 1
class DataLoader: pass
"""
SCRIPT = """
import sys, time; sys.path.insert(0, FOLDER)
from torch.utils.data import dataloader
for batch in dataloader._BaseDataLoaderIter():
    print("batch", batch, flush=True)
    if batch == 2 and PAUSE: time.sleep(PAUSE); print("evaluated"); break
"""


def stalling(folder: Path, pause: float = 0) -> dict[str, Any]:
    """Return fields of a job that gets three batches on this host; it waits for the next, or computes for a while."""
    module = folder / "torch" / "utils" / "data"
    module.mkdir(parents=True, exist_ok=True)
    (module / "dataloader.py").write_text(STAND_IN)
    script = SCRIPT.replace("FOLDER", repr(str(folder))).replace("PAUSE", str(pause))
    return {"command": ["python3", "-c", script], "data_loader": LOADER}


def in_image(pause: float = 0) -> dict[str, Any]:
    """Return such fields for a container, whose script writes the stand-in first."""
    write = (
        "import os; os.makedirs('/tmp/site/torch/utils/data'); "
        f"open('/tmp/site/torch/utils/data/dataloader.py', 'w').write({STAND_IN!r})\n"
    )
    script = write + SCRIPT.replace("FOLDER", "'/tmp/site'").replace("PAUSE", str(pause))
    return {"command": ["python3", "-c", script], "data_loader": LOADER}


@pytest.fixture
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `up` inside this process look at the engine's health status every half second."""
    monkeypatch.setattr("trainlaunch.run.base.watch.HEALTH_SECONDS", 0.5)


@pytest.mark.docker
@pytest.mark.usefixtures("_looks_often")
@pytest.mark.parametrize("target", ["docker", pytest.param("compose", marks=pytest.mark.long)])
def test_a_stalled_container_is_stopped(
    trainlaunch: Runs, make_job: Callable[..., Path], target: str, compose: str
) -> None:
    """The engine makes the checks, `up` stops it as a failed attempt."""
    job = make_job(**in_image(), healthcheck=WATCHED, restart={"max_attempts": 2}, stop_grace_period="5s")
    done = trainlaunch("up", str(job), "--target", target)
    assert compose
    assert done.returncode in {143, 137}, done.stderr
    assert done.stderr.count("for one batch, 2 s are allowed (stall_after): stopping the job") == 2
    assert "attempt 1 of 2 ended" in done.stderr
    assert "cause[TL671]" in done.stderr


@pytest.mark.docker
def test_a_keeper_stops_a_detached_run(trainlaunch: Runs, make_job: Callable[..., Path], job_name: str) -> None:
    """Nobody follows it."""
    job = make_job(**in_image(), healthcheck=WATCHED, stop_grace_period="5s")
    assert trainlaunch("up", "-d", str(job)).returncode == 0
    done = trainlaunch("wait", job_name)
    assert done.returncode in {143, 137}
    assert "cause[TL671]" in done.stderr


@pytest.mark.docker
@pytest.mark.long  # tests/local has it on this host
@pytest.mark.usefixtures("_looks_often")
def test_a_long_evaluation_is_no_stall(trainlaunch: Runs, make_job: Callable[..., Path]) -> None:
    """Nothing waits for a batch meanwhile."""
    job = make_job(**in_image(pause=6), healthcheck=WATCHED)
    done = trainlaunch("up", str(job))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "evaluated"), done.stderr
    assert "unhealthy" not in done.stderr
