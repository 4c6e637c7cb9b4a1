"""`trainlaunch probe` with real torch on real engines: what it measures is what the job then needs, to the page."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Runs
from tests.run.conftest import containers_of

pytestmark = pytest.mark.docker
# Batches of 1 MiB in one storage and 64 bytes in another; what it would save lies in /saved.
TRAIN = """
import pathlib, sys, torch
from torch.utils.data import DataLoader, Dataset
class Random(Dataset):
    def __len__(self): return 8 * {steps}
    def __getitem__(self, i): return torch.zeros(1 << 15), i
if __name__ == "__main__":
    model = torch.nn.Linear(1, 1)
    loader = DataLoader(Random(), batch_size=8, num_workers=2, persistent_workers=True)
    for epoch in range(3):
        for x, y in loader:
            model(x[:1, :1]).sum().backward()
        print("epoch", epoch, flush=True)
    pathlib.Path("/saved/model").write_text("weights")
"""
U = (1 << 20) + 4096
NEED = 6 * U + 14 * 4096
MULTI_EPOCH = NEED + U + 14 * 4096


@pytest.fixture
def job(make_job: Callable[..., Path], torch_image: str, tmp_path: Path) -> Callable[..., Path]:
    """Write a job without a word of its batches, whose script has workers of its own, and return its file."""

    def make(steps: int = 40, **over: Any) -> Path:
        (tmp_path / "saved").mkdir(exist_ok=True)
        (tmp_path / "train.py").write_text(TRAIN.format(steps=steps))
        mounts = [
            {"type": "bind", "source": "./saved", "target": "/saved"},
            {"type": "bind", "source": "./train.py", "target": "/train.py", "read_only": True},
        ]
        fields = {"shm_size": None, "data_loader": {}, "resources": {"cpus": 2, "memory": "1Gi"}, "mounts": mounts}
        return make_job(image=torch_image, command=["python3", "/train.py"], image_entrypoint=[], **{**fields, **over})

    return make


@pytest.mark.usefixtures("compose")
@pytest.mark.parametrize("target", ["docker", pytest.param("compose", marks=pytest.mark.long)])
def test_what_is_measured_is_what_the_job_needs(
    trainlaunch: Runs, job: Callable[..., Path], job_name: str, target: str, tmp_path: Path
) -> None:
    """Two storages of a batch, two workers; then three epochs in exactly multi_epoch, and nothing saved before.

    The memory limit is the job's, and /dev/shm as large as that: the preflight says both.
    """
    job_file = job()
    done = trainlaunch("probe", str(job_file), "--target", target, "--write", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert "preflight passed: /dev/shm 1023 MiB" in done.stderr
    assert "memory 1024 MiB" in done.stderr
    found = json.loads(done.stdout)
    assert found["probe"]["loaders"][0]["batch"]["storages"] == [1 << 20, 64]
    assert found["probe"]["loaders"][0]["num_workers"] == 2
    assert found["shm"]["need"] == NEED
    assert found["shm"]["multi_epoch"] == MULTI_EPOCH
    assert found["ended"] in {"batches", "checks"}  # a busy machine may have no time for all checks
    assert list((tmp_path / "saved").iterdir()) == []
    assert containers_of(job_name) == []
    up = trainlaunch("up", str(job_file), "--target", target, "--set", f"shm_size={MULTI_EPOCH}")
    assert up.returncode == 0, up.stderr
    assert (tmp_path / "saved" / "model").read_text() == "weights"


@pytest.mark.long  # tests/inside has the script, tests/local what is said
def test_through_lets_the_script_save(trainlaunch: Runs, job: Callable[..., Path], tmp_path: Path) -> None:
    """It says so first; each loop is cut short."""
    done = trainlaunch("probe", str(job(steps=4000)), "--through", "--batches", "4", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert "its own saving and evaluation run" in done.stderr
    assert done.stderr.count("epoch ") == 3
    assert (tmp_path / "saved" / "model").read_text() == "weights"
    found = json.loads(done.stdout)
    assert found["ended"] == "script"
    assert found["shm"]["need"] == NEED


@pytest.mark.long  # the first test has their options
def test_the_pages_commands_do_as_it_says(trainlaunch: Runs, job: Callable[..., Path], tmp_path: Path) -> None:
    """docs/probe.md's own lines, one after the other; then the job is sized."""
    job()
    page = (ROOT / "docs" / "probe.md").read_text()
    (body,) = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = [shlex.split(line, comments=True) for line in body.splitlines()]
    assert [line[:3] for line in lines] == [["trainlaunch", "probe", "job.yaml"]] * 2
    said, kept = (trainlaunch(*line[1:], cwd=tmp_path) for line in lines)
    assert (said.returncode, kept.returncode) == (0, 0), kept.stderr
    assert "train.py:9 *" in said.stdout
    assert "wrote job.lock.yaml" in kept.stdout
    plan = " ".join(trainlaunch("plan", "job.yaml", "--why", cwd=tmp_path).stdout.split())
    assert "(job.lock.yaml:14 (lock))" in plan
    assert "unsized" not in plan


def test_inject_is_silent_about_loaders_of_probes_own(
    trainlaunch: Runs, job: Callable[..., Path], tmp_path: Path
) -> None:
    """What probe builds for its checks is no loader of the script, which has one."""
    job_file = job(steps=80, data_loader={"num_workers": 2, "inject": "num_workers"})
    script = tmp_path / "train.py"
    script.write_text(script.read_text().replace(", num_workers=2, persistent_workers=True", ""))
    done = trainlaunch("probe", str(job_file))
    told = [each for each in done.stderr.splitlines() if "num_workers" in each and "preflight" not in each]
    assert len(told) == 1, done.stderr
    assert "num_workers 0 → 2" in told[0]
