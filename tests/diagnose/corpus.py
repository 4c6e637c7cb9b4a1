"""The field reports about logs, and what a log looks like on its way to a reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.units import parse_size

CASES = Path(__file__).resolve().parents[1] / "cases"


def rows() -> dict[str, dict[str, Any]]:
    """Return the rows whose first answer is known, by id."""
    lines = [line for name in ("cases", "reports") for line in (CASES / f"{name}.jsonl").read_text().splitlines()]
    found = [json.loads(line) for line in lines]
    return {row["id"]: row for row in found if row["area"] == "doctor" and row.get("symptom")}


def evidence_for(row: dict[str, Any], log: str | None = None) -> Evidence:
    """Return what is known of a row, its own log or another in its place."""
    inspect = row.get("inspect", {})
    host = inspect.get("HostConfig", {})
    ipc = host.get("IpcMode", "")
    return Evidence(
        exit_code=row.get("exit_code"),
        log=row["input"] if log is None else log,
        oom_killed=inspect.get("State", {}).get("OOMKilled", False),
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
