"""Containers that hang, made for real with torch, and what `doctor` says of them while they go on.

Stacks are read where py-spy is installed; without it the same symptom is named from what the kernel says.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Runs

pytestmark = pytest.mark.docker
MakeJob = Callable[..., Path]
LOADER = """\
import sys, threading, time, torch
from torch.utils.data import DataLoader, Dataset
LOCK = threading.Lock()
class Data(Dataset):
    def __len__(self): return 4000
    def __getitem__(self, index):
        if sys.argv[1] == 'asleep' and index == 37:
            time.sleep(600)
        if sys.argv[1] == 'locked':
            with LOCK: pass
        return torch.zeros(1 << 20 if sys.argv[1] == 'full' else 1000)
if sys.argv[1] == 'locked':
    LOCK.acquire()
for batch in DataLoader(Data(), batch_size=4, num_workers=2, collate_fn=list if sys.argv[1] == 'full' else None):
    if sys.argv[1] == 'well': time.sleep(0.3)
"""
RANKS = """\
import os, sys, time, torch
import torch.distributed as dist
second = os.environ['RANK'] == '1'
if second and sys.argv[1] == 'dead':
    os._exit(0)
dist.init_process_group('gloo')
if second:
    time.sleep(600)
dist.all_reduce(torch.ones(4))
"""
TWO_WORKERS = {"batch_size": 4, "num_workers": 2, "sample": [{"shape": [1000], "dtype": "float32"}]}
PATIENCE = 300  # seconds: many tests at once make torch slow to start
ROOM = {"cpus": 1, "memory": "1Gi"}
HANGS: dict[str, tuple[dict[str, Any], str]] = {
    "a worker asleep": (
        {"command": ["python3", "/w/loader.py", "asleep"], "data_loader": TWO_WORKERS, "resources": ROOM},
        "slow-loading",
    ),
    "a lock held across fork": (
        {"command": ["python3", "/w/loader.py", "locked"], "data_loader": TWO_WORKERS, "resources": ROOM},
        "fork-deadlock",
    ),
    "a full /dev/shm": (
        {"command": ["python3", "/w/loader.py", "full"], "data_loader": TWO_WORKERS, "resources": ROOM},
        "shm-exhausted-hang",
    ),
    "a rank that has ended": (
        {"command": ["python3", "/w/ranks.py", "dead"], "torchrun": {"nproc_per_node": 2}, "resources": ROOM},
        "dist-timeout-secondary",
    ),
}  # fmt: skip


@pytest.fixture
def make_hanging(make_job: MakeJob, torch_image: str, tmp_path: Path) -> Callable[..., str]:
    """Write a job of the torch image that has both scripts in /w, and return its path."""
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "loader.py").write_text(LOADER)
    (folder / "ranks.py").write_text(RANKS)
    mounts = [{"type": "bind", "source": str(folder), "target": "/w", "read_only": True}]

    def make(**fields: Any) -> str:
        return str(make_job(image=torch_image, mounts=mounts, **fields))

    return make


@pytest.fixture
def trainlaunch_until(trainlaunch: Runs) -> Callable[[str], dict[str, Any]]:
    """Ask `doctor` until it says that something is wrong, and return its document."""

    def ask(job: str) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while True:
            done = trainlaunch("doctor", job, "--output", "json")
            document: dict[str, Any] = json.loads(done.stdout)
            if done.returncode == 1 or time.monotonic() > until:
                return document

    return ask


@pytest.mark.parametrize(
    "name", ["a worker asleep", *(pytest.param(each, marks=pytest.mark.long) for each in list(HANGS)[1:])]
)
def test_a_hang_is_named_while_the_container_goes_on(
    name: str, trainlaunch: Runs, trainlaunch_until: Any, make_hanging: Callable[..., str]
) -> None:
    """By its processes, not by a signal to any: all of them are still there afterwards.

    A worker is told with its function, its line and its seconds where py-spy reads its stack.
    """
    fields, symptom = HANGS[name]
    path = make_hanging(**fields)
    assert trainlaunch("up", "-d", path).returncode == 0
    document = trainlaunch_until(path)
    assert [each["symptom"] for each in document["diagnoses"]] == [symptom], document
    if name == "a worker asleep" and shutil.which("py-spy") is not None:
        assert "in `__getitem__` at /w/loader.py:8 for" in document["diagnoses"][0]["cause"]
    again = json.loads(trainlaunch("doctor", path, "--output", "json").stdout)
    first, second = ({each["pid"]: each for each in one["live"][0]["processes"]} for one in (document, again))
    job = {pid for pid, each in first.items() if each["name"].startswith(("python", "pt_", "torchrun"))}
    assert len(job) >= 2  # and no health check, which comes and goes
    assert job <= second.keys()


@pytest.mark.skipif(shutil.which("py-spy") is None, reason="py-spy is not installed")
def test_a_rank_that_waits_for_a_sleeping_one_is_told_with_both_places(
    trainlaunch: Runs, trainlaunch_until: Any, make_hanging: Callable[..., str]
) -> None:
    """What the one waits in, and where the other stands."""
    fields = {"command": ["python3", "/w/ranks.py", "asleep"], "torchrun": {"nproc_per_node": 2}, "resources": ROOM}
    job = make_hanging(**fields)
    assert trainlaunch("up", "-d", job).returncode == 0
    (found,) = trainlaunch_until(job)["diagnoses"]
    assert "rank 0 waits in all_reduce at /w/ranks.py:9" in found["cause"]
    assert "for rank 1, which has been at /w/ranks.py:8" in found["cause"]


def test_a_training_that_works_is_well_and_shows_what_it_uses(
    trainlaunch: Runs, make_job: MakeJob, torch_image: str
) -> None:
    """Exit 0: its /dev/shm by owner, its memory, its workers, an estimate of its queue."""
    job = str(
        make_job(
            image=torch_image,
            command=["python3", "-c", LOADER, "well"],
            data_loader=TWO_WORKERS,
            resources={"cpus": 2, "memory": "1Gi"},
        )
    )
    assert trainlaunch("up", "-d", job).returncode == 0
    until = time.monotonic() + PATIENCE
    while True:
        done = trainlaunch("doctor", job)
        if "worker 1" in done.stdout or time.monotonic() > until:
            break
    assert done.returncode == 0, done.stdout
    for words in ("semaphores", "of 1.0 GiB: processes", "worker 0", "an estimate", "files open"):
        assert words in done.stdout


def test_a_look_by_a_command_inside_says_the_same(torch_image: str) -> None:
    """Where the host's /proc is not ours to see: another machine's engine, or no right to."""
    from trainlaunch.run.base.live_snapshot import command, read_snapshot

    name = f"trainlaunch-look-{time.monotonic_ns()}"
    started = ["docker", "run", "-d", "--rm", "--name", name, "--memory", "1g", "--user", "1234", torch_image]
    subprocess.run([*started, "python3", "-c", LOADER, "well"], check=True, capture_output=True)
    try:
        until = time.monotonic() + PATIENCE
        look = None
        while (look is None or len(look.workers) < 2) and time.monotonic() < until:
            shown = subprocess.run(["docker", "exec", name, *command()], check=True, capture_output=True, text=True)
            look = read_snapshot(shown.stdout)
        assert look is not None
        assert len(look.workers) == 2
        assert look.shm is not None
        assert look.shm.size == 64 << 20
        assert look.memory is not None
        assert look.memory.limit == 1 << 30
        assert {each.parent for each in look.workers} == {1}
    finally:
        subprocess.run(["docker", "rm", "-f", name], check=True, capture_output=True)
