"""How long `trainlaunch check` and `render` take for many jobs: 1,000 job files × 3 targets unless told otherwise.

    python bench/bulk.py                  the goal: at most 3 s and 150 MB, and no worse than linear
    python bench/bulk.py --render         `render` of the job files; the goal: at most 4 s, the rest as above
    python bench/bulk.py --jobs 200       fewer job files, no goal
    python bench/bulk.py --output json    the same as one JSON document

Writes job files that differ in what changes a text (workers, batches, mounts, environment, script or command), renders
each for each target into folders of their own, and runs `trainlaunch check` on a quarter, half and all of them, each
several times in a process of its own, then once more for its memory; with `--render`, `render` of them into an empty
folder. Time is the best of those runs, start of Python included. Memory is the largest sum over all of its processes
(proportional set size, sampled). Exit 1 when the goal is missed. Time by the clock needs a machine that does nothing
else: the CPU column tells when it did.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "launcher"))

from trainlaunch.policy import read_job  # noqa: E402 - the checkout's own package, whatever is installed
from trainlaunch.render import render  # noqa: E402
from trainlaunch.rules import plan_job  # noqa: E402
from trainlaunch.targets import TARGETS, text_targets  # noqa: E402

JOBS = 1000
RUNS = 3
SAMPLE_SECONDS = 0.02
MOST_SECONDS = 3.0
MOST_RENDER_SECONDS = 4.0
MOST_MB = 150
MOST_GROWTH = 1.25  # of the time per job from half of the jobs to all of them
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """One size: how many job and rendered files, seconds of the best run by the clock and by CPU, peak of memory."""

    jobs: int
    renderings: int
    wall_s: float
    cpu_s: float
    peak_mb: float


def job_fields(number: int) -> dict[str, Any]:
    """Return job `number`: no two have the same text."""
    gpus = number % 3
    loader: dict[str, Any] = {
        "batch_size": 16 + number % 240,
        "sample": [{"shape": [3, 224, 224], "dtype": "float32"}, {"shape": [], "dtype": "int64"}],
        "loaders": {"train": {}, "val": {"batch_size": 256}},
    }
    if number % 4 == 0:
        loader["num_workers"] = 1 + number % 7
    fields: dict[str, Any] = {
        "name": f"job-{number:05d}",
        "image": f"registry.example/team-{number % 20}/trainer:{number % 9}.{number % 11}",
        "working_dir": "/workspace",
        "env": {"RUN": f"run {number}", "DATA": "/data/$SPLIT", "SEED": str(number)},
        "mounts": [{"type": "volume", "source": f"data-{number % 50}", "target": "/data", "read_only": True}],
        "resources": {"cpus": 4 + number % 13, "memory": f"{24 + number % 40}Gi", "gpus": gpus},
        "data_loader": loader,
        "target_overrides": {
            "kubernetes": {"mounts": [{"type": "pvc", "source": f"data-{number % 50}", "target": "/data"}]}
        },
    }
    if number % 5 == 0:
        return {**fields, "script": "set -x\npython prepare.py\nexec python train.py --epochs 3\n"}
    return {**fields, "command": ["python", "train.py", "--workers={num_workers}", "--seed", str(number)]}


def write_jobs(folder: Path, count: int) -> None:
    """Write `count` job files and the rendered file of each."""
    jobs = folder / "jobs"
    jobs.mkdir(parents=True)
    for target in text_targets():
        (folder / target).mkdir()
    for number in range(count):
        path = jobs / f"job-{number:05d}.yaml"
        path.write_text(yaml.dump(job_fields(number), Dumper=yaml.CSafeDumper, sort_keys=False), encoding="utf-8")
        for target in text_targets():
            base = folder / target
            plan = plan_job(read_job(path, target=target))
            file = base / TARGETS[target].file_name.format(name=plan.job.name)
            file.write_text(render(plan, base=base), encoding="utf-8")


def measure(folder: Path, jobs: int, runs: int, *, renders: bool) -> Measured:
    """Return the best of `runs` runs on `folder`, which holds `jobs` job files."""
    wall, cpu = zip(*(run_once(folder, renders=renders) for _ in range(runs)), strict=True)
    peak = round(peak_mb(folder, renders=renders), 1)
    return Measured(jobs, jobs * len(text_targets()), round(min(wall), 3), round(min(cpu), 3), peak)


def start(folder: Path, *, renders: bool) -> int:
    """Start `trainlaunch check` on `folder`, or `render` of its jobs, and return its process id."""
    argv = [sys.executable, "-m", "trainlaunch", "check", str(folder)]
    if renders:
        out = folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        argv = [*argv[:3], "render", str(folder / "jobs"), "--target", "all", "--write-to", str(out)]
    no_notes = (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
    return os.posix_spawn(
        sys.executable, argv, {**os.environ, "PYTHONPATH": str(ROOT / "launcher")}, file_actions=[no_notes]
    )


def run_once(folder: Path, *, renders: bool) -> tuple[float, float]:
    """Return seconds by the clock and seconds of CPU of one run, all processes of it."""
    begin = time.perf_counter()
    _, status, used = os.wait4(start(folder, renders=renders), 0)
    wall = time.perf_counter() - begin
    if status:
        raise SystemExit(f"trainlaunch on {folder} ended with wait status {status}")
    return wall, used.ru_utime + used.ru_stime


def peak_mb(folder: Path, *, renders: bool) -> float:
    """Return the largest memory of one run in MB (10⁶ bytes): the sum over its processes, shared pages counted once."""
    process, peak = start(folder, renders=renders), 0
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        peak = max(peak, memory_of(process))
        time.sleep(SAMPLE_SECONDS)
    return peak / 1e6


def memory_of(process: int) -> int:
    """Return the proportional set size of a process and of those that it started, in bytes; 0 once it is gone."""
    try:
        proc = Path(f"/proc/{process}")
        children = (proc / "task" / str(process) / "children").read_text().split()
        sizes = (proc / "smaps_rollup").read_text()
    except (OSError, ProcessLookupError):
        return 0
    own = next((int(line.split()[1]) * 1024 for line in sizes.splitlines() if line.startswith("Pss:")), 0)
    return own + sum(memory_of(int(each)) for each in children)


def missed(results: Sequence[Measured], most: float) -> Iterator[str]:
    """Yield each part of the goal that the largest size missed."""
    half, whole = results[-2:]
    if whole.wall_s > most:
        yield f"{whole.wall_s:.2f} s, the goal is {most} s"
    if whole.peak_mb > MOST_MB:
        yield f"{whole.peak_mb:.0f} MB, the goal is {MOST_MB} MB"
    growth = (whole.cpu_s / whole.jobs) / (half.cpu_s / half.jobs)
    if growth > MOST_GROWTH:
        yield f"a job takes {growth:.2f} × as long among {whole.jobs} as among {half.jobs}; at most {MOST_GROWTH} ×"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"job files (default {JOBS}; the goal is for those)")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs of each size (default {RUNS})")
    parser.add_argument("--render", action="store_true", help="measure `render` of the job files, not `check`")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    args = parser.parse_args(argv)
    results = []
    for jobs in (args.jobs // 4, args.jobs // 2, args.jobs):
        with tempfile.TemporaryDirectory() as folder:
            write_jobs(Path(folder), jobs)
            results.append(measure(Path(folder), jobs, args.runs, renders=args.render))
    most = MOST_RENDER_SECONDS if args.render else MOST_SECONDS
    failures = list(missed(results, most)) if args.jobs >= JOBS else []
    if args.output == "json":
        told = {"schema_version": SCHEMA_VERSION, "results": [asdict(each) for each in results], "missed": failures}
        print(json.dumps(told, indent=2))
    else:
        print(f"{'jobs':>6} {'renderings':>10} {'wall s':>8} {'CPU s':>8} {'ms each':>8} {'peak MB':>8}")
        for each in results:
            per = 1000 * each.cpu_s / each.renderings
            print(
                f"{each.jobs:>6} {each.renderings:>10} {each.wall_s:>8.2f} {each.cpu_s:>8.2f} {per:>8.2f} "
                f"{each.peak_mb:>8.0f}"
            )
        print("\n".join(f"missed: {each}" for each in failures) or "no goal missed")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
