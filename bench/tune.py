"""Is what `trainlaunch tune` chooses as fast as the best of all? Three loaders, two steps, 1 CPU, 2 and more.

    python bench/tune.py                      # 12 searches on 2 CPUs; about 35 minutes
    python bench/tune.py --only decode-large-2cpu --budget 2m
    python bench/tune.py --output json

Each case: `trainlaunch tune` on Docker, as a user types it. Then a program that knows nothing of it times every number
of workers in a container with the same limits, and no workers with one thread, twice; the best of that sweep and the
chosen setting are timed alternately five times more. "chosen / best" is the median of the one beside that of the other,
1.00 where both are the same setting; "rule" is what `plan` gives without tune, from the sweep. Exits 1 where a chosen
one is below 0.95 of the best.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "launcher")]

from tests.engine.images import torch_image  # noqa: E402

PROGRAM = ROOT / "bench" / "tune" / "train.py"
GOAL = 0.95
SECONDS = 2  # of one timing
ALTERNATIONS = 5
WORKERS = (0, 1, 2, 3, 4, 6, 8, 12, 16)  # without those that are above four for each CPU
MEMORY = "4Gi"


class Case(NamedTuple):
    """One job: what its samples cost, what its step costs, and its CPUs."""

    loader: str
    step: str
    cpus: int

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return f"{self.loader}-{self.step}-{self.cpus}cpu"


class Outcome(NamedTuple):
    """What was found: settings as WORKERS:PREFETCH, with :THREADS where the plan has others; rates, and their shares.

    Rates are in batches per second, shares of the best's median.
    """

    case: str
    chosen: str
    best: str
    chosen_share: float
    rule: str
    rule_share: float
    limit: str
    sweep: dict[str, float]


def cases() -> Iterator[Case]:
    """Yield all that this host has the CPUs for."""
    there = len(os.sched_getaffinity(0))
    for cpus in sorted({1, 2, *(each for each in (4, 8, 16) if each <= there)}):
        for loader in ("decode", "io", "tiny"):
            for step in ("small", "large"):
                yield Case(loader, step, cpus)


def outcome(case: Case, folder: Path, image: str, budget: str) -> Outcome:
    """Tune one case, then time it by other means."""
    shutil.copy(PROGRAM, folder / "train.py")
    tuned = tune(case, folder, image, budget)
    chosen = setting(tuned["chosen"], case.cpus)
    every = [f"{each}:2" for each in WORKERS if each <= max(8, 4 * case.cpus)] + ["0:2:1"] * (case.cpus > 1)
    swept = timed(case, folder, image, every * 2)
    if chosen not in swept:
        swept |= timed(case, folder, image, [chosen] * 2)
    sweep = {each: median(rates) for each, rates in swept.items()}
    best = max(sweep, key=lambda each: sweep[each])
    share = 1.0
    if chosen != best:
        again = timed(case, folder, image, [chosen, best] * ALTERNATIONS)
        share = median(again[chosen]) / median(again[best])
    rule = f"{planned(folder)}:2"
    limit = tuned["limit"]["what"] if tuned["limit"] else "-"
    return Outcome(case.name, chosen, best, share, rule, sweep[rule] / sweep[best], limit, sweep)


def tune(case: Case, folder: Path, image: str, budget: str) -> dict[str, Any]:
    """Return what `trainlaunch tune -o json` says of a case."""
    job = {
        "name": f"bench-{case.name}",
        "image": image,
        "command": ["python", "/job/train.py", case.loader, case.step, "{num_workers}"],
        "mounts": [{"type": "bind", "source": str(folder), "target": "/job", "read_only": True}],
        "resources": {"cpus": case.cpus, "memory": MEMORY},
        "data_loader": {"batch_size": 32, "sample": [{"shape": [3, 96, 96], "dtype": "float32"}]},
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(job), encoding="utf-8")
    return dict(json.loads(trainlaunch("tune", str(folder / "job.yaml"), "--budget", budget, "-o", "json")))


def planned(folder: Path) -> int:
    """Return the workers that `plan` gives by its rule."""
    return int(json.loads(trainlaunch("plan", str(folder / "job.yaml"), "-o", "json"))["num_workers"])


def setting(chosen: dict[str, Any], cpus: int) -> str:
    """Return a setting as WORKERS:PREFETCH, with :THREADS where they aren't the plan's."""
    workers, threads = chosen["num_workers"], chosen["threads"]
    own = threads is not None and threads != max(1, cpus - workers)
    return f"{workers}:{chosen['prefetch_factor'] if workers else 2}" + f":{threads}" * own


def timed(case: Case, folder: Path, image: str, settings: list[str]) -> dict[str, list[float]]:
    """Return the rates of each setting, timed in this order by a program of its own in one container."""
    argv = ["docker", "run", "--rm", f"--cpus={case.cpus}", "--memory=4g", "--shm-size=2g", f"--env=CPUS={case.cpus}"]
    argv += [f"--env=OMP_NUM_THREADS={case.cpus}", f"--volume={folder}:/job:ro", image, "python", "/job/train.py"]
    argv += [case.loader, case.step, ",".join(settings), str(SECONDS)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=900)
    rates: dict[str, list[float]] = {}
    for name, rate in json.loads(done.stdout):
        rates.setdefault(name, []).append(rate)
    return rates


def trainlaunch(*argv: str) -> str:
    """Return what a command of this checkout prints."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "launcher")}
    program = [sys.executable, "-m", "trainlaunch", *argv]
    return subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True, env=env, timeout=900).stdout


def line(found: Outcome) -> str:
    """Return a row of the table."""
    return (
        f"| {found.case} | {found.chosen} | {found.best} | {found.sweep[found.best]:.2f} | {found.chosen_share:.2f} "
        f"| {found.rule} | {found.rule_share:.2f} | {found.limit} |"
    )


def main() -> int:
    """Print a row for each case as it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="CASE", help="one case; repeatable")
    parser.add_argument("--budget", default="60s", help="of each search (default: 60s)")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    args = parser.parse_args()
    wanted = [each for each in cases() if not args.only or each.name in args.only]
    if not wanted:
        parser.error(f"no such case; there are {', '.join(each.name for each in cases())}")
    image, found = torch_image(), []
    if args.output == "text":
        print("| case | chosen | best | batches/s | chosen / best | rule | rule / best | limit |\n" + "|---" * 8 + "|")
    for case in wanted:
        with tempfile.TemporaryDirectory() as folder:
            found.append(outcome(case, Path(folder), image, args.budget))
        if args.output == "text":
            print(line(found[-1]), flush=True)
    if args.output == "json":
        print(json.dumps([each._asdict() for each in found], indent=2))
    missed = [each for each in found if each.chosen_share < GOAL]
    print(f"{len(found) - len(missed)} of {len(found)} reach {GOAL} of the best", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
