"""`up` with `inject: num_workers`: an untouched script trains with the planned workers, within the planned /dev/shm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Runs

pytestmark = pytest.mark.docker
TRAIN = """
import torch
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.zeros(128, 1024))
train = DataLoader(data, batch_size=2, shuffle=True)
val = DataLoader(data, batch_size=4)
for epoch in range(2):
    for batch in train: pass
print(train.num_workers, val.num_workers, sum(1 for _ in train), flush=True)
"""
LOADER = {
    "inject": "num_workers",
    "num_workers": 2,
    "batch_size": 2,
    "sample": {"shape": [1024], "dtype": "float32"},
}


def test_an_untouched_script_gets_the_planned_workers(
    trainlaunch: Runs, make_job: Callable[..., Path], torch_image: str
) -> None:
    """With the heartbeat beside them, in the least /dev/shm; a loader that is not planned gets none."""
    limits = {"resources": {"cpus": 1, "memory": "1Gi"}, "shm_size": "64Mi"}
    fields = {"data_loader": LOADER, "healthcheck": {"stall_after": "10m"}, **limits}
    job = make_job(command=["python3", "-c", TRAIN], image=torch_image, **fields)
    done = trainlaunch("up", str(job))
    assert (done.returncode, done.stdout) == (0, "2 0 64\n"), done.stderr
    assert " is off " not in done.stderr
    assert "<string>:5 num_workers 0 → 2" in done.stderr
    assert "left alone: /dev/shm is not sized for its batch_size 4" in done.stderr or "fewer than 64" in done.stderr
