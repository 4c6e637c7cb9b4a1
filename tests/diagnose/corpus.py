"""The field reports about logs, and what a log looks like on its way to a reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.units import parse_size

CASES = Path(__file__).resolve().parents[1] / "cases"


def rows_of(*files: Path) -> dict[str, dict[str, Any]]:
    """Return the rows about logs of files of cases, by id; a row may accept no symptom by name."""
    found = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return {row["id"]: row for row in found if row["area"] == "doctor" and "symptom" in row}


def rows() -> dict[str, dict[str, Any]]:
    """Return the rows whose first answer is known, by id."""
    return {
        name: row for name, row in rows_of(CASES / "cases.jsonl", CASES / "reports.jsonl").items() if row["symptom"]
    }


def evidence_for(row: dict[str, Any], log: str | None = None) -> Evidence:
    """Return what is known of a row, its own log or another in its place."""
    inspect = row.get("inspect") or {}
    host = inspect.get("HostConfig", {})
    ipc = host.get("IpcMode", "")
    return Evidence(
        exit_code=row.get("exit_code"),
        log=row["input"] if log is None else log,
        oom_killed=inspect.get("State", {}).get("OOMKilled"),
        ipc_mode=ipc,
        private_shm=ipc in {"", "private", "shareable"},
        shm_size=host.get("ShmSize") or parse_size(inspect.get("sizeLimit", "0Mi")),
        memory=host.get("Memory") or parse_size(inspect.get("memory_limit", "0Mi")),
        target=inspect.get("target", "docker"),
        pids_limit=host.get("PidsLimit", 0),
    )


def harmless(count: int, seed: int = 0) -> str:
    """Return lines as trainings print them when all is well."""
    forms = (
        "Epoch {a}/90 [{b:>5}/5005] Time 0.213 (0.245) Data 0.001 (0.012) Loss 3.{b} (4.01) Acc@1 31.{a}",
        "2026-03-01 10:{a:02d}:11,042 - INFO - step {b} loss 0.{b} lr 1.0e-04 grad_norm 1.{a} mem 31.2GiB",
        "[NCCL INFO] node-1:88:412 [0] NCCL INFO Channel 0{a}/32 : 0[0] -> 1[1] via P2P/CUMEM",
        "val_loss=0.{b}, val_error=0.0{a}, num_workers=8: 100%|##########| {b}/{b} [00:1{a}<00:00, 31.2it/s]",
        "Saving model checkpoint to /ckpt/checkpoint-{b}",
        "step {b}: data_wait 0.001 s, errors 0, exceptions 0, killed 0, /dev/shm 512M of 8.0G used",
        "W0301 10:00:0{a}.123000 7 torch/distributed/run.py:792] Setting OMP_NUM_THREADS to be 1 in default",
        "{{'loss': 2.{b}, 'grad_norm': 1.{a}, 'learning_rate': 4.9e-05, 'epoch': 0.{a}}}",
        "UserWarning: The given NumPy array is not writable; this warning is suppressed for the rest of this program.",
        "  warnings.warn(",
    )
    return "".join(
        forms[(number + seed) % len(forms)].format(a=(number + seed) % 10, b=1000 + number) + "\n"
        for number in range(count)
    )


def generated(count: int, seed: int = 0) -> str:
    """Return lines of which no two are alike without their digits, as generated text is."""
    letters = str.maketrans("0123456789", "qwtyuopkzj")
    numbers = ((number, (number + seed) * 2_654_435_761 % 2**32, (number + seed) * 40_503) for number in range(count))
    return "".join(f"sample {number} said: {one:x} of {other:x}\n".translate(letters) for number, one, other in numbers)


DRESSES: dict[str, Callable[[str], str]] = {
    "plain": lambda line: line,
    "carriage returns": lambda line: f"{line}\r",
    "colours": lambda line: f"\x1b[31m{line}\x1b[0m",
    "compose": lambda line: f"trainer-1  | {line}",
    "coloured compose": lambda line: f"\x1b[36mtrainer-1  | \x1b[0m{line}",
    "docker times": lambda line: f"2026-03-01T10:00:01.123456789Z {line}",
    "kubectl": lambda line: f"[pod/resnet50-7c9-0/trainer] {line}",
    "kubectl with times": lambda line: f"[pod/resnet50-7c9-0/trainer] 2026-03-01T10:00:01.123456789Z {line}",
    "torchrun": lambda line: f"[default3]:{line}",
    "ranks": lambda line: f"[rank3]: {line}",
    "journald": lambda line: f"Mar 01 10:00:01 node-1 dockerd[1234]: {line}",
    "journald iso": lambda line: f"2026-03-01T10:00:01+0100 node-1 trainer[99]: {line}",
    "github": lambda line: f"2026-03-01T10:00:01.1234567Z {line}",
    "containerd": lambda line: f"2026-03-01T10:00:01.123456789Z stderr F {line}",
    "docker file": lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-03-01T10:00:01Z"}),
    "srun": lambda line: f"3: {line}",
    "ray": lambda line: f"(TrainWorker pid=123, ip=10.0.0.7) {line}",
}


def dressed(text: str, name: str) -> str:
    """Return a log with each line as one of the programs shows it that logs pass through."""
    return "".join(f"{DRESSES[name](line)}\n" for line in text.splitlines())


_TRACEBACK = (
    'Traceback (most recent call last):\n  File "/workspace/data.py", line 41, in load\n    return read(path)\n'
)
# What runs print of an error that they go on after, at their beginning.
CAUGHT = {
    "smaller batch": "batch size 256 failed: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total "
    "capacity of 15.00 GiB; trying 128\nbatch size 128\nstep 0 loss 2.31\n",
    "no driver": "/opt/venv/lib/python3.12/site-packages/torch/cuda/__init__.py:174: UserWarning: CUDA initialization: "
    "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from "
    "http://www.nvidia.com/Download/index.aspx\n  return torch._C._cuda_getDeviceCount() > 0\ndevice cpu\n",
    "cache": "Could not cache non-existence of file. Will ignore error and continue. Error: [Errno 28] No space left "
    "on device: '/cache/hub/.no_exist/config.json'\n",
    "optional module": _TRACEBACK + "ModuleNotFoundError: No module named 'flash_attn'\nflash attention is not there"
    ", using the slow one\nepoch 0 step 0 loss 2.3\n",
    "logged traceback": "ERROR:root:download failed, attempt 1 of 3\n"
    + _TRACEBACK
    + "ConnectionResetError: [Errno 104] "
    "Connection reset by peer\nERROR:root:download failed, attempt 2 of 3\ndownloaded 12 files\n",
    "missing checkpoint": _TRACEBACK + "FileNotFoundError: [Errno 2] No such file or directory: '/ckpt/last.pt'\n"
    "starting from scratch\nEpoch 0 step 10 loss 1.9\n",
    "shared memory once": _TRACEBACK
    + "RuntimeError: unable to allocate shared memory(shm) for file </torch_9_1_0>: No "
    "space left on device (28)\nretrying with num_workers=0\nstep 1 loss 0.9\n",
    "worker once": "RuntimeError: DataLoader worker (pid 91) is killed by signal: Killed. \nrestarting the loader\n"
    "Epoch 0:  12%|#2        | 12/100 [00:03<00:20,  4.1it/s]\n",
    "port": "The server socket has failed to listen on [::]:29500 (errno: 98 - Address already in use).\nport 29500 is "
    "taken, trying 29501\nRank 0 of 1 ready\n",
    "peer": _TRACEBACK
    + "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by "
    "peer [10.0.0.2]:1234\nrendezvous again, 3 ranks\ntrain step 2 loss 1.1\n",
}
_PROGRESS = "Epoch 1 step 10 loss 1.9\nEpoch 1 step 20 loss 1.8\nSaving model checkpoint to /ckpt/checkpoint-20\n"
# Ordinary logs of runs of which nobody says how they ended, each with what failed and did not matter.
ORDINARY_ENDS = {name: text + _PROGRESS + "Epoch 2 step 30 loss 1.7\n" for name, text in CAUGHT.items()}
