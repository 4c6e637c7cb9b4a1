"""On a machine with a GPU: how many images per second an unmodified script trains on before and after inject and tune.

    python bench/gpu_workers.py                  # ResNet-50 on JPEGs, five minutes; needs torch, torchvision and Pillow
    python bench/gpu_workers.py --device cpu     # whether it works at all, on a machine without a GPU

Target local, so that no engine is needed. Three runs of the same script and the search between them: as it is (no
worker), with `data_loader.inject: num_workers` (what the rule gives), and with what `trainlaunch tune --write` put into
the lock. Nothing is asserted: prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "bench" / "gpu_workers" / "train.py"
KEPT = ("--write", "-o", "json")
RATE = re.compile(r"^images per second ([\d.]+)$", re.MULTILINE)


def trainlaunch(*argv: str) -> str:
    """Return what a command of this checkout prints on stdout; its stderr is shown."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "launcher")}
    program = [sys.executable, "-m", "trainlaunch", *argv]
    return subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True, env=env, timeout=900).stdout


def written_job(folder: Path, *, seconds: float, device: str, inject: str) -> Path:
    """Write the job file, whose script sets no num_workers, and return its path."""
    cpus = len(os.sched_getaffinity(0))
    job = {
        "name": "gpu-workers",
        "target": "local",
        "image": "none:1",
        "command": [sys.executable, str(folder / "train.py"), str(folder / "jpeg"), "--device", device],
        "env": {"SECONDS": str(seconds)},
        "resources": {"cpus": cpus, "memory": "16Gi" if device == "cpu" else "64Gi", "gpus": int(device == "cuda")},
        "data_loader": {
            "batch_size": 128 if device == "cuda" else 4,
            "sample": [{"shape": [3, 224, 224], "dtype": "uint8"}],
            "inject": inject,
        },
    }
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job), encoding="utf-8")
    return path


def rate_of(job: Path) -> float:
    """Return the images per second that a run of a job prints."""
    out = trainlaunch("up", str(job))
    trainlaunch("down", str(job))
    found = RATE.search(out)
    if found is None:
        raise SystemExit(f"the script printed no rate:\n{out}")
    return float(found[1])


def main() -> int:
    """Print a row for each of the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--budget", default="2m", help="of the search (default: 2m)")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each run once it trains (default: 15)")
    args = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(PROGRAM, folder / "train.py")
        print("| script | num_workers | images/s |\n|---|---|---|")
        job = written_job(folder, seconds=args.seconds, device=args.device, inject="env")
        print(f"| as it is | 0 | {rate_of(job):.0f} |", flush=True)
        job = written_job(folder, seconds=args.seconds, device=args.device, inject="num_workers")
        planned = json.loads(trainlaunch("plan", str(job), "-o", "json"))["num_workers"]
        print(f"| inject: num_workers | {planned} | {rate_of(job):.0f} |", flush=True)
        found = json.loads(trainlaunch("tune", str(job), "--set", "env.SECONDS='3600'", "--budget", args.budget, *KEPT))
        chosen = found["chosen"]
        told = f"{chosen['num_workers']}, prefetch_factor {chosen['prefetch_factor']}"
        print(f"| inject and tune | {told} | {rate_of(job):.0f} |", flush=True)
        print(
            f"\nlimited by {found['limit']['what']}: {found['limit']['why']}; {time.monotonic() - begun:.0f} s in all"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
