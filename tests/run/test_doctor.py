"""Containers that die, each in its own way: `up` alone names the cause, and `doctor` the same afterwards."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Runs

pytestmark = pytest.mark.docker
MakeJob = Callable[..., Path]
SHM = "import mmap, os; f = os.open('/dev/shm/x', os.O_CREAT | os.O_RDWR); os.ftruncate(f, 1 << 28); "
SIGBUS = f"{SHM}m = mmap.mmap(f, 1 << 28); m[:] = bytes(1 << 28)"
EAT = "x = [bytes(1 << 24) for _ in iter(int, 1)]"
TOO_MANY_FILES = "f = [open('/dev/null') for _ in range(100)]"
THREADS = (
    "import threading, time; [threading.Thread(target=time.sleep, args=(9,), daemon=True).start() for _ in range(99)]"
)
SEMLOCK = (
    "import multiprocessing as m; open('/dev/shm/x', 'wb', 0).write(bytes(1 << 26)); l = [m.Lock() for _ in range(9)]"
)
UNPICKLABLE = (
    "import multiprocessing as m\n"
    "if __name__ == '__main__':\n"
    "    m.get_context('spawn').Process(target=lambda: 1).start()"
)
ONE_GIB = {"resources": {"memory": "1Gi"}}
FEW_FILES = {"ulimits": {"nofile": 64}}
DEATHS: dict[str, tuple[dict[str, Any], str]] = {
    "SIGBUS on a full /dev/shm": ({"command": ["python3", "-c", SIGBUS]}, "shm-exhausted"),
    "no room for a semaphore": ({"command": ["python3", "-c", SEMLOCK], **ONE_GIB}, "shm-exhausted"),
    "out of memory": ({"command": ["python3", "-c", EAT], "resources": {"memory": "96Mi"}}, "oom-killed"),
    "too many open files": ({"command": ["python3", "-c", TOO_MANY_FILES], **FEW_FILES}, "fd-limit"),
    "too many threads": (
        {"command": ["python3", "-c", THREADS], "patches": {"docker": {"extra_args": ["--pids-limit=16"]}}},
        "thread-limit",
    ),
    "something that can't be pickled": ({"command": ["python3", "-c", UNPICKLABLE]}, "unpicklable"),
    "a missing module": ({"command": ["python3", "-c", "import no_such_module"]}, "module-missing"),
    "a missing script": ({"command": ["python3", "/workspace/train.py"]}, "file-missing"),
    "a missing file": ({"command": ["python3", "-c", "open('/data/labels.csv')"]}, "file-missing"),
    "no permission": (
        {"command": ["python3", "-c", "open('/etc/shadow').read()"], "user": "1234:1234"},
        "permission-denied",
    ),
    "a plain exception": ({"command": ["python3", "-c", "raise ValueError('lr')"]}, "python-exception"),
}  # fmt: skip


@pytest.mark.parametrize("name", DEATHS)
def test_up_names_a_death_and_doctor_the_same(trainlaunch: Runs, make_job: MakeJob, job_name: str, name: str) -> None:
    """With no flag and no other look; `doctor` reads it from what the engine keeps."""
    fields, symptom = DEATHS[name]
    job = str(make_job(**fields))
    up = trainlaunch("up", job)
    assert up.returncode not in {0, 125}, up.stderr
    codes = re.findall(r"cause\[(TL\d+)\]", up.stderr)
    done = trainlaunch("doctor", job, "--output", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    first = json.loads(done.stdout)["diagnoses"][0]
    assert first["symptom"] == symptom, (up.stderr, first)
    assert first["code"] == codes[0]


def test_a_first_cause_is_not_lost_under_a_megabyte_of_what_follows(trainlaunch: Runs, make_job: MakeJob) -> None:
    """`up` reads the whole log, and says so by the cause."""
    script = (
        "import sys\n"
        "print('RuntimeError: received 0 items of ancdata', file=sys.stderr, flush=True)\n"
        "print('the harmless end of it\\n' * 50000, flush=True)\n"
        "sys.exit(1)\n"
    )
    done = trainlaunch("up", str(make_job(command=["python3", "-c", script])))
    assert done.returncode == 1
    assert "cause[TL607]" in done.stderr


def test_a_run_that_goes_on_and_is_well_is_told_so(trainlaunch: Runs, make_job: MakeJob) -> None:
    """Exit 0, and what it holds in /dev/shm."""
    job = str(make_job(command=["sleep", "60"]))
    assert trainlaunch("up", "-d", job).returncode == 0
    done = trainlaunch("doctor", job)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runs" in done.stdout


def test_a_full_shm_of_a_run_that_goes_on_is_said(trainlaunch: Runs, make_job: MakeJob) -> None:
    """Before anything dies of it."""
    script = "import time; open('/dev/shm/x', 'wb', 0).write(bytes(1 << 26)); print('full', flush=True); time.sleep(60)"
    job = str(make_job(command=["python3", "-c", script], shm_size="64Mi", data_loader={"num_workers": 0}))
    assert trainlaunch("up", "-d", job).returncode == 0
    for _ in range(50):
        done = trainlaunch("doctor", job, "--output", "json")
        if done.returncode == 1:
            break
    assert done.returncode == 1, done.stdout
    assert json.loads(done.stdout)["diagnoses"][0]["symptom"] == "shm-exhausted"
