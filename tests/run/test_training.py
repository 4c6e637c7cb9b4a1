"""`up` beside a real PyTorch DataLoader: a lost batch is said while it hangs, an unsized job gets its line.

By default each symptom and each way of measuring once; what is said of the others, test_watch.py, test_measured.py and
tests/diagnose show without torch.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from trainlaunch.units import parse_size

from tests.conftest import ROOT, Runs
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
def test_a_batch_without_room_is_named(trainlaunch: Runs, torch_job: Callable[..., str]) -> None:
    """The default collate raises, and the cause is /dev/shm and not a disk."""
    sample = {"num_workers": 0, "batch_size": 4, "sample": [{"shape": [1], "dtype": "float32"}]}
    done = trainlaunch("up", torch_job({"data_loader": sample}, mib=12, pause=1))
    assert done.returncode == 1
    assert "cause[TL605]: /dev/shm of 64 MiB is full" in done.stderr


@pytest.mark.long
def test_workers_that_nobody_planned_are_told(trainlaunch: Runs, torch_job: Callable[..., str]) -> None:
    """A script with its own num_workers trains, and `up` says that its batches were not planned for."""
    sample = {"num_workers": 0, "batch_size": 4, "sample": [{"shape": [1], "dtype": "float32"}]}
    done = trainlaunch("up", torch_job({"data_loader": sample}))
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
    assert "found 2 DataLoader workers, planned 0" in done.stderr


EPOCHS = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset
class Random(Dataset):
    def __len__(self): return 12 * 4
    def __getitem__(self, i):
        time.sleep({loading})
        return torch.zeros(1, 1 << 18)
if __name__ == "__main__":
    loader = DataLoader(Random(), batch_size=4, num_workers={workers})
    for epoch in range(3):
        for batch in loader:
            time.sleep({pause})
    print("trained", flush=True)
"""


def measured(text: str) -> dict[str, Any]:
    """Return the last data_loader block to paste in a text."""
    block = re.findall(r"^data_loader:\n(?:  .*\n?)+", text, re.MULTILINE)[-1]
    found: dict[str, Any] = yaml.safe_load(block)["data_loader"]
    return found


@pytest.mark.parametrize(
    ("workers", "pause", "loading"),
    [
        (2, 0.25, 0),
        pytest.param(1, 0.25, 0, marks=pytest.mark.long),
        pytest.param(4, 0.25, 0, marks=pytest.mark.long),
        pytest.param(2, 0, 0.05, marks=pytest.mark.long),
    ],
)
def test_the_measured_line_is_one_and_trains_three_epochs(
    trainlaunch: Runs, make_job: Callable[..., Path], torch_image: str, workers: int, pause: float, loading: float
) -> None:
    """`up`, `status` and `wait` give the same lines; with them, /dev/shm of the plan's multi_epoch is enough.

    The script runs as many workers as were planned (2), fewer and more; the last loop waits for each batch.
    """
    script = EPOCHS.format(workers=workers, pause=pause, loading=loading)
    resources = {"cpus": 2, "memory": "6Gi"}
    unsized = {"resources": resources, "data_loader": {"num_workers": 2, "batch_size": 4}, "shm_size": None}
    job = str(make_job(image=torch_image, command=["python3", "-c", script], **unsized))
    done = trainlaunch("up", job)
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
    told = measured(done.stderr)
    assert BATCH <= parse_size(told["batch_bytes"]["size"]) <= 4 * BATCH
    assert measured(trainlaunch("status", job).stdout) == told
    assert measured(trainlaunch("wait", job).stderr) == told
    pasted = [word for key, value in told.items() for word in ("--set", f"data_loader.{key}={json.dumps(value)}")]
    planned = json.loads(trainlaunch("plan", job, *pasted, "--output", "json").stdout)
    exactly = ("--set", f"shm_size={planned['shm']['multi_epoch'] // 1024}Ki")
    again = trainlaunch("up", job, *pasted, *exactly)
    assert (again.returncode, again.stdout) == (0, "trained\n"), again.stderr
    assert "unsized" not in again.stderr


LOCALLY = """
job=/tmp/job.yaml; launch="python3 -m trainlaunch"
$launch up $job >/tmp/out 2>/tmp/up || { cat /tmp/up; exit 1; }
$launch status $job >/tmp/status 2>&1; $launch wait $job >/tmp/wait 2>&1
for each in up status wait; do sed -n '/^data_loader:/,/batch_bytes/p' /tmp/$each | tail -n 2; done
size=$(sed -n 's/^  batch_bytes: {size: \\(.*\\), tensors.*/\\1/p' /tmp/up | tail -n 1)
$launch up $job --set "data_loader.batch_bytes={size: $size, tensors: 1}" 2>/tmp/again || { cat /tmp/again; exit 1; }
$launch plan $job --set "data_loader.batch_bytes={size: $size, tensors: 1}" --output json
"""


@pytest.mark.long
def test_the_measured_line_of_a_local_run_trains_three_epochs(torch_image: str, tmp_path: Path) -> None:
    """The same on target local, whose host here is a container: what was seen is what its own processes held."""
    script = EPOCHS.format(workers=2, pause=0.5, loading=0)
    job = {"name": "digits", "image": "none:1", "target": "local", "command": ["python3", "-c", script]}
    job |= {"resources": {"cpus": 2, "memory": "4Gi"}, "data_loader": {"num_workers": 2, "batch_size": 4}}
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    packages = Path(yaml.__file__).parents[1]
    binds = {str(ROOT): "/repository", str(packages): "/packages", str(tmp_path / "job.yaml"): "/tmp/job.yaml"}
    mounts = [f"--mount=type=bind,source={source},target={target},readonly" for source, target in binds.items()]
    command = (
        "docker",
        "run",
        "--rm",
        "--init",
        "--shm-size=1g",
        "--env=PYTHONPATH=/repository/launcher:/packages",
        *mounts,
    )
    shell = ("--workdir=/repository", "--entrypoint=sh", torch_image, "-c", LOCALLY)
    done = subprocess.run((*command, *shell), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    up, status, wait, trained, plan = re.split(r"^(?=data_loader:|trained|\{)", done.stdout, flags=re.MULTILINE)[1:]
    assert up == status == wait, done.stdout
    assert BATCH <= parse_size(measured(up)["batch_bytes"]["size"]) <= 2 * BATCH
    assert trained == "trained\n"
    assert json.loads(plan)["shm"]["multi_epoch"] >= 7 * BATCH
