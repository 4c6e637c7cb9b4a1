"""Processes of this host that hang, made for real: `doctor` says who waits where, without a signal to any of them."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Runs

MakeJob = Callable[..., Path]
# The frame in which torch's main process waits, without torch: what it does is read a pipe.
LOADER = "import os\n\n\ndef _try_get_data(pipe):\n    return os.read(pipe, 1)\n"
TRAINING = """\
import ctypes, multiprocessing, os, sys, threading, time
sys.path.insert(0, sys.argv[1])
from torch.utils.data.dataloader import _try_get_data

LOCK = threading.Lock()
READ, _ = os.pipe()


def __getitem__(mode):
    if mode == "asleep":
        time.sleep(600)
    with LOCK:
        pass


def worker(mode):
    ctypes.CDLL(None).prctl(15, b"pt_data_worker", 0, 0, 0)
    __getitem__(mode)


LOCK.acquire()
multiprocessing.get_context("fork").Process(target=worker, args=(sys.argv[2],)).start()
print("waiting", flush=True)
_try_get_data(READ)
"""


@pytest.fixture
def hung(tmp_path: Path, make_job: MakeJob, trainlaunch: Runs) -> Callable[[str], str]:
    """Start a run whose worker hangs in one of two ways, and return its name."""
    package = tmp_path / "lib" / "torch" / "utils" / "data"
    package.mkdir(parents=True)
    (package / "dataloader.py").write_text(LOADER)
    (tmp_path / "train.py").write_text(TRAINING)

    def start(mode: str) -> str:
        job = make_job(command=["python", str(tmp_path / "train.py"), str(tmp_path / "lib"), mode])
        name = f"{mode}-{uuid.uuid4().hex[:10]}"
        assert trainlaunch("up", "-d", "--target", "local", str(job), "--name", name).returncode == 0
        return name

    return start


def asleep(document: dict[str, Any]) -> float:
    """Return for how long the worker of the only run slept, 0 where there is none yet."""
    (live,) = document["live"]
    return max((each["asleep"] or 0 for each in live["processes"] if each["worker"] is not None), default=0)


def test_a_worker_that_hangs_is_found_and_goes_on(hung: Callable[[str], str], trainlaunch: Runs) -> None:
    """Exit 1, the symptom, and the same processes before and after, whether it sleeps or waits for a lock."""
    runs = {hung("asleep"): "slow-loading", hung("locked"): "fork-deadlock"}
    for run, symptom in runs.items():
        until = time.monotonic() + 60
        while True:
            done = trainlaunch("doctor", "--target", "local", "--output", "json", run)
            document = json.loads(done.stdout)
            # Earlier it may be a slow storage.
            if (done.returncode == 1 and asleep(document) >= 5) or time.monotonic() > until:
                break
        assert [each["symptom"] for each in document["diagnoses"]] == [symptom], document
        live = document["live"][0]
        (worker,) = [each for each in live["processes"] if each["worker"] is not None]
        assert worker["asleep"] >= 5
        assert worker["state"] == "S"
        again = json.loads(trainlaunch("doctor", "--target", "local", "--output", "json", run).stdout)
        assert {each["pid"] for each in again["live"][0]["processes"]} == {each["pid"] for each in live["processes"]}


def test_a_run_that_works_is_well(make_job: MakeJob, trainlaunch: Runs) -> None:
    """Exit 0, with its processes and what it uses."""
    job = str(make_job(command=["python", "-c", "print('on', flush=True)\nwhile True: pass"]))
    assert trainlaunch("up", "-d", "--target", "local", job).returncode == 0
    done = trainlaunch("doctor", "--target", "local", job)
    assert done.returncode == 0, done.stdout
    assert "CPUs" in done.stdout
    assert "/dev/shm" in done.stdout
