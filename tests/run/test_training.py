"""`up` beside a real PyTorch DataLoader: a lost batch is said while it hangs, an unsized job gets its line."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launcher.units import parse_size
from tests.conftest import Runs
from tests.run.test_up import Start, ended

pytestmark = pytest.mark.docker
BATCH = 4 << 20  # bytes: 4 samples of 1 MiB
SIZED = {"data_loader": {"num_workers": 2, "batch_size": 4, "sample": [{"shape": [1], "dtype": "float32"}]}}
USUAL = {"steps": 12, "mib": 1, "workers": 2, "collate": None, "pause": 0.3, "before": "pass"}
HANGS = {**SIZED, "stop_grace_period": "5s"}
TRAIN = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset
class Random(Dataset):
    def __len__(self): return {steps} * 4
    def __getitem__(self, i): return torch.zeros({mib}, 1 << 18)
if __name__ == "__main__":
    {before}
    for batch in DataLoader(Random(), batch_size=4, num_workers={workers}, collate_fn={collate}):
        time.sleep({pause})
    print("trained", flush=True)
"""


@pytest.fixture
def torch_job(make_job: Callable[..., Path], torch_image: str) -> Callable[..., str]:
    """Write a job that trains on random tensors and return its path; keywords fill TRAIN, `over` goes over the job."""

    def make(over: dict[str, Any], **how: object) -> str:
        script = TRAIN.format(
            **{"steps": 12, "mib": 1, "workers": 2, "collate": None, "pause": 0.3, "before": "pass", **how}
        )
        resources = {"cpus": 2, "memory": "2Gi"}
        return str(make_job(image=torch_image, command=["python3", "-c", script], resources=resources, **over))

    return make


def test_a_lost_batch_is_said_while_the_job_hangs(start: Start, torch_job: Callable[..., str]) -> None:
    """A custom collate and a full /dev/shm: torch waits for ever, and `up` says so before anybody interrupts it."""
    process = start("up", torch_job(HANGS, mib=32, collate="list"))
    said = said_while_it_hangs(process)
    assert re.search(r"since \d\d:\d\d:\d\d /dev/shm of 64 MiB is full", said)
    assert "end the run, then set shm_size to 1Gi and resources.memory to at least" in said
    code, out, err = ended(process)
    assert (code, out) == (143, "")
    assert "cause[TL603]" in err


def test_a_temporary_directory_of_the_scripts_own_is_named_while_the_job_hangs(
    start: Start, torch_job: Callable[..., str]
) -> None:
    """The preflight can't see a TMPDIR that the script sets itself; no socket of a worker fits in its long path."""
    too_long = "import os; os.environ['TMPDIR'] = '/tmp/' + 99 * 'x'; os.mkdir(os.environ['TMPDIR'])"
    process = start("up", torch_job(HANGS, before=too_long, collate="list"))
    said = said_while_it_hangs(process)
    assert re.search(r"since \d\d:\d\d:\d\d the temporary directory can't hold the socket", said)
    assert "set env: {TMPDIR: /tmp}" in said
    assert "cause[TL608]" in ended(process)[2]


@pytest.mark.parametrize("read_only_tmp", [False, True])
def test_a_read_only_root_trains_or_stops_but_never_hangs(
    trainlaunch: Runs, torch_job: Callable[..., str], tmp_path: Path, read_only_tmp: bool
) -> None:
    """`read_only` brings a /tmp of its own; where the job mounts one that can't be written, the preflight stops it."""
    tmp = [{"type": "bind", "source": str(tmp_path), "target": "/tmp", "read_only": True}] if read_only_tmp else []
    done = trainlaunch("up", torch_job({**SIZED, "read_only": True, "mounts": tmp}, steps=2, collate="list"))
    assert done.returncode == (78 if read_only_tmp else 0), done.stderr
    assert ("can't make files in /tmp" in done.stderr) == read_only_tmp


def said_while_it_hangs(process: subprocess.Popen[bytes]) -> str:
    """Return what `up` wrote to stderr until it said that the job hangs; then interrupt it."""
    assert process.stderr is not None
    guard = threading.Timer(90, process.kill)
    guard.start()
    seen = b""
    while b"will not end by itself" not in seen:
        line = process.stderr.readline()
        assert line, seen.decode()
        seen += line
    guard.cancel()
    process.send_signal(signal.SIGINT)
    return seen.decode()


def test_a_batch_without_room_is_named(trainlaunch: Runs, torch_job: Callable[..., str]) -> None:
    """The default collate raises, and the cause is /dev/shm and not a disk."""
    sample = {"num_workers": 0, "batch_size": 4, "sample": [{"shape": [1], "dtype": "float32"}]}
    done = trainlaunch("up", torch_job({"data_loader": sample}, mib=12, pause=1))
    assert done.returncode == 1
    assert "cause[TL605]: /dev/shm of 64 MiB is full" in done.stderr


def test_workers_that_nobody_planned_are_told(trainlaunch: Runs, torch_job: Callable[..., str]) -> None:
    """A script with its own num_workers trains, and `up` says that its batches were not planned for."""
    sample = {"num_workers": 0, "batch_size": 4, "sample": [{"shape": [1], "dtype": "float32"}]}
    done = trainlaunch("up", torch_job({"data_loader": sample}))
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
    assert "2 DataLoader workers run and 0 were planned" in done.stderr


def test_an_unsized_job_gets_the_line_to_paste(trainlaunch: Runs, torch_job: Callable[..., str]) -> None:
    """After it trained: at least one batch, at most two, whatever the samples hit; status has such a line too."""
    loader = {"num_workers": 2, "batch_size": 4}
    job = torch_job({"data_loader": loader, "shm_size": None, "healthcheck": {"interval": "1s"}})
    done = trainlaunch("up", job)
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
    line = re.search(r"^  batch_bytes: \{size: (\S+), tensors: 1\}", done.stderr, re.MULTILINE)
    assert line is not None, done.stderr
    assert BATCH <= parse_size(line[1]) <= 2 * BATCH
    assert "batch_bytes: {size: " in trainlaunch("status", job).stdout
