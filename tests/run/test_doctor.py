"""Containers that die, each in its own way: `up` alone names the cause, and `doctor` the same afterwards."""

from __future__ import annotations

import json
import re
import subprocess
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
FORKS = "import multiprocessing as m, time; [m.Process(target=time.sleep, args=(3,)).start() for _ in range(99)]"
NO_TMP = "import tempfile; tempfile._candidate_tempdir_list = lambda: ['/nowhere']; tempfile.mkdtemp()"
FULL_DISK = "import shutil; shutil.copyfile('/etc/hostname', '/dev/full')"  # the kernel's own ENOSPC
MANY_TENSORS = {"num_workers": 2, "batch_size": 1, "sample": [{"shape": [1], "dtype": "float32"}] * 40}
# With torch, and so in its image.
WORKERS = """\
import os, sys, torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self): return 64
    def __getitem__(self, index):
        if sys.argv[1] == 'eats': return len([bytes(1 << 24) for _ in iter(int, 1)])
        if sys.argv[1] == 'exits': os._exit(3)
        if sys.argv[1] == 'raises': raise ZeroDivisionError('in a sample')
        return torch.zeros(1)
if sys.argv[1] == 'cuda': torch.zeros(1).cuda()
for batch in DataLoader(Data(), num_workers=1): pass
"""
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
    "a fork too many": (
        {"command": ["python3", "-c", FORKS], "patches": {"docker": {"extra_args": ["--pids-limit=16"]}}},
        "thread-limit",
    ),
    "no folder for temporary files": ({"command": ["python3", "-c", NO_TMP]}, "tmpdir-unusable"),
    "a full disk": ({"command": ["python3", "-c", FULL_DISK]}, "disk-full"),
    "a crash in native code": ({"command": ["python3", "-c", "import ctypes; ctypes.string_at(0)"]}, "worker-segfault"),
    "fewer files than its batches need": (
        {"command": ["true"], "ulimits": {"nofile": 64}, "resources": {"memory": "1Gi"}, "data_loader": MANY_TENSORS},
        "config-refused",
    ),
    "a machine whose /dev/shm is taken": (
        {
            "command": ["true"],
            "image_entrypoint": ["sh", "-c", 'head -c 60000000 /dev/zero > /dev/shm/old; exec "$0" "$@"'],
            "shm_size": "64Mi",
            "resources": {"memory": "1Gi"},
            "data_loader": {"num_workers": 1, "batch_size": 1, "sample": [{"shape": [1 << 20], "dtype": "float32"}]},
        },
        "machine-refused",
    ),
    "a plain exception": ({"command": ["python3", "-c", "raise ValueError('lr')"]}, "python-exception"),
}  # fmt: skip


# Of these the text alone tells, and tests/diagnose has it; the others need what the engine or the kernel says.
# SIGBUS has a test in test_up.py.
TOLD_ELSEWHERE = {
    "SIGBUS on a full /dev/shm",
    "too many open files",
    "a missing module",
    "no room for a semaphore",
    "something that can't be pickled",
    "a missing script",
    "a missing file",
    "no permission",
    "a fork too many",
    "no folder for temporary files",
    "a full disk",
}


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.long if each in TOLD_ELSEWHERE else []) for each in DEATHS]
)
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


@pytest.mark.parametrize(
    ("how", "symptoms"),
    [
        ("eats", {"oom-killed-worker", "oom-killed"}),
        pytest.param("exits", {"worker-exited"}, marks=pytest.mark.long),
        pytest.param("raises", {"worker-exception"}, marks=pytest.mark.long),
        pytest.param("cuda", {"gpu-missing"}, marks=pytest.mark.long),
    ],
)
def test_a_death_of_a_worker_is_named_by_up_and_by_doctor(
    how: str, symptoms: set[str], trainlaunch: Runs, make_job: MakeJob, torch_image: str
) -> None:
    """With torch itself: its memory, its exit, its exception; and a GPU that is not there."""
    loader = {"num_workers": 1, "batch_size": 1, "sample": [{"shape": [1], "dtype": "float32"}]}
    command = ["python3", "-c", WORKERS, how]
    job = str(make_job(image=torch_image, command=command, data_loader=loader, resources={"memory": "512Mi"}))
    up = trainlaunch("up", job)
    assert up.returncode not in {0, 125}, up.stderr
    codes = re.findall(r"cause\[(TL\d+)\]", up.stderr)
    first = json.loads(trainlaunch("doctor", job, "--output", "json").stdout)["diagnoses"][0]
    assert first["symptom"] in symptoms, (up.stderr, first)
    assert first["code"] == codes[0]


@pytest.mark.long  # tests/preflight has the refusal
def test_an_image_without_tmp_is_refused_before_its_workers_hang(
    trainlaunch: Runs, make_job: MakeJob, base_image: str, tmp_path: Path
) -> None:
    """Nothing of /tmp, /var/tmp and /usr/tmp is in it, and its user may make none."""
    tag = f"{base_image.partition(':')[0]}:without-tmp-{tmp_path.name.replace('_', '-')}"[:120]
    recipe = f"FROM {base_image}\nRUN rm -rf /tmp /var/tmp /usr/tmp\n"
    subprocess.run(["docker", "build", "--tag", tag, "-"], input=recipe.encode(), check=True, capture_output=True)
    try:
        command = ["python3", "-c", "import tempfile; tempfile.mkdtemp()"]
        loader = {"batch_size": 4, "num_workers": 1, "sample": [{"shape": [1], "dtype": "float32"}]}
        job = str(make_job(image=tag, user="1234:1234", command=command, data_loader=loader))
        up = trainlaunch("up", job)
        assert up.returncode == 78
        assert "cause[TL601]" in up.stderr
        assert "set TMPDIR to /dev/shm" in up.stderr
        first = json.loads(trainlaunch("doctor", job, "--output", "json").stdout)["diagnoses"][0]
        assert (first["symptom"], first["code"]) == ("config-refused", "TL601")
    finally:
        trainlaunch("down", job)
        subprocess.run(["docker", "rmi", tag], check=False, capture_output=True)


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
