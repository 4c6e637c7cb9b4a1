"""Is what `up` says of waits for data what the script's own stopwatch says, and what does the noting cost?

    python bench/data_wait.py                       # six scripts in containers, then pairs; about five minutes
    python bench/data_wait.py --only lightning,hf
    python bench/data_wait.py --only py-spy         # all beside py-spy (pip install py-spy); `decode*` is one of them
    python bench/data_wait.py --output json

Each script is a job that `trainlaunch up` starts on Docker with 2 CPUs, and `status -o json` tells what was noted. The
figures are shares of the run, as it says them; of several ranks each. Exits 1 where one is more than 2 percentage
points from the script's own, or where the notes take more than 5 µs a batch; `heartbeat` is that of `stall_after`.

Those are CPU times of `next()` with and without notes, in turn by chance within one loop over a loader without workers:
once with nothing between the batches, once with the steps of a small model, which leave little in the caches. The 5th
percentiles are compared, which other processes on the machine touch least; what they do to the median stands behind.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "launcher")]

from trainlaunch.container.instrumentation_files import _files  # noqa: E402
from trainlaunch.plan.instrumentation import DATA_WAIT, HEARTBEAT  # noqa: E402
from trainlaunch.run.base.wait_reading import PAGE, read_page  # noqa: E402

from tests.engine.images import examples_image  # noqa: E402

LOOPS = ROOT / "bench" / "data_wait" / "loops.py"
SCRIPTS = ("decode", "read", "tiny", "lightning", "hf", "ranks")
POINTS, MICROSECONDS, BATCHES = 2.0, 5.0, 1000
RATE, EPOCHS = 250, 4  # of py-spy: thousands of samples, so that two standard deviations are about one point
TURNS = """
import json, random, sys, time, torch
from torch.utils.data import DataLoader, dataloader
noted, clock = dataloader._BaseDataLoaderIter.__next__, time.thread_time_ns
functions = {"with": noted, "without": noted.__wrapped__}
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer, given = torch.optim.SGD(model.parameters(), 1e-6), torch.randn(16, 64)
torch.set_num_threads(1)
def step():
    optimizer.zero_grad()
    model(given).mean().backward()
    optimizer.step()
def turns(between):
    names = [*functions] * BATCHES
    random.shuffle(names)
    took, batches = {name: [] for name in functions}, iter(DataLoader(range(len(names) + 9), batch_size=None))
    for _ in range(9):
        noted(batches)
        step()  # it is a loop that trains
    for name in names:
        function = functions[name]
        begun = clock()
        function(batches)
        took[name].append(clock() - begun)
        between()
    ordered = {name: sorted(each) for name, each in took.items()}
    at = [BATCHES // 20, BATCHES // 2]
    return [(ordered["with"][each] - ordered["without"][each]) / 1000 for each in at]
turns(step)
print(json.dumps({"loop": turns(lambda: None), "steps": turns(step)}))
"""


class Row(NamedTuple):
    """One phase of one rank: seconds by the script's stopwatch and by the notes, and the run's."""

    script: str
    rank: int
    phase: str
    stopwatch: float
    noted: float
    run: float

    @property
    def off(self) -> float:
        """Return the difference in percentage points of the run."""
        return 100 * abs(self.noted - self.stopwatch) / self.run


class Cost(NamedTuple):
    """CPU microseconds that noting adds to a batch: of the 5th percentiles, and of the medians."""

    parts: str
    between: str
    low: float
    median: float


def trainlaunch(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run trainlaunch from this checkout."""
    command = [sys.executable, "-m", "trainlaunch", *words]
    env = {"PYTHONPATH": str(ROOT / "launcher"), "PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def rows_of(script: str, image: str, folder: Path) -> Iterator[Row]:
    """Run one script as a job and yield what both stopwatches say."""
    name = f"bench-data-wait-{script}"
    job: dict[str, Any] = {
        "name": name,
        "image": image,
        "command": ["python", "/loops/loops.py", script],
        "mounts": [{"type": "bind", "source": str(LOOPS.parent), "target": "/loops", "read_only": True}],
        "resources": {"cpus": 2, "memory": "4Gi"},
        "data_loader": {"num_workers": 2, "batch_size": 16, "sample": {"shape": [4096], "dtype": "float32"}},
    }
    if script == "ranks":
        job["torchrun"] = {"nproc_per_node": 2}
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    done = trainlaunch(folder, "up", "job.yaml")
    status = trainlaunch(folder, "status", name, "-o", "json")
    trainlaunch(folder, "down", name)
    own = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"rank"')]
    if done.returncode or not own:
        raise SystemExit(f"{script} ended with {done.returncode}: {done.stderr[-3000:]}")
    container = json.loads(status.stdout)["containers"][0]
    run = container["finished"] - container["started"]
    for each in own:
        for phase in ("training", "evaluation"):
            loaders = container["data_wait"]["loaders"]
            noted = [one["waited"] for one in loaders if (one["rank"], one["phase"]) == (each["rank"], phase)]
            if noted or each[phase]:
                yield Row(script, each["rank"], phase, each[phase], sum(noted), run)


def with_parts(folder: Path, *parts: str) -> list[str]:
    """Deliver parts into a folder and return the begin of a command that runs a container with them."""
    folder.mkdir()
    (folder / HEARTBEAT).write_text(" " * 4096)
    for name, text in _files(parts):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    settings = [f"--volume={folder}:/delivered", "--env=PYTHONPATH=/delivered"]
    return ["docker", "run", "--rm", *settings, f"--env=TRAINLAUNCH_INSIDE={' '.join(parts)}"]


def microseconds(image: str, folder: Path, *parts: str) -> Iterator[Cost]:
    """Yield what a batch takes longer with the parts."""
    program = TURNS.replace("BATCHES", str(BATCHES))
    command = [*with_parts(folder / "-".join(parts), *parts), image, "python", "-c", program]
    measured = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for between, (low, median) in measured.items():
        yield Cost(" + ".join(parts), between, low, median)


def beside_py_spy(script: str, image: str, folder: Path) -> Iterator[Row]:
    """Yield the seconds that each rank's main thread waited by py-spy's stacks, and by the notes of the same run.

    Both as shares of the script's own function, whatever else its process did. A sampler that is late, while the
    script has the CPUs, makes up for it while the script waits: samples count by the time between them.
    """
    own = folder / f"spy-{script}"
    mounts = [f"--volume={LOOPS.parent}:/loops:ro", f"--volume={shutil.which('py-spy')}:/py-spy:ro"]
    settings = ["--shm-size=1g", "--cap-add=SYS_PTRACE", *mounts]
    recorded = f"/py-spy record --idle --format=chrometrace --output=/delivered/stacks$RANK --rate={RATE}"
    line = f"RANK=${{RANK:-0}}; exec {recorded} -- python /loops/loops.py {script} {EPOCHS}"
    starter = ["torchrun", "--nproc-per-node=2", "--no-python"] if script == "ranks" else []
    command = [*with_parts(own, DATA_WAIT), *settings, image, *starter, "bash", "-c", line]
    subprocess.run(command, capture_output=True, text=True, check=True)
    noted = read_page((own / PAGE).read_bytes(), time.time(), lambda _: False)
    for rank in (0, 1) if script == "ranks" else (0,):
        seconds, waited = seconds_of(json.loads((own / f"stacks{rank}").read_text()), script)
        yield Row(f"{script}*", rank, "both", waited, noted.ranks[rank] if noted else 0.0, seconds)


def seconds_of(events: list[dict[str, Any]], script: str) -> tuple[float, float]:
    """Return the seconds of a script's function, and those within it in a DataLoader's iterator."""
    total = waited = 0.0
    stack: list[bool] = []  # of the frames below that function, whether each is a wait
    begun, thread = 0.0, None
    for event in events:
        is_function = event["name"] == script and event["args"]["filename"].endswith("loops.py")
        thread = event["tid"] if is_function else thread
        if event["ph"] not in "BE" or event["tid"] != thread or not (stack or is_function):
            continue
        total += (event["ts"] - begun) * bool(stack)
        waited += (event["ts"] - begun) * any(stack)
        begun = event["ts"]
        if event["ph"] == "B":
            in_loader = event["args"]["filename"].endswith("torch/utils/data/dataloader.py")
            stack.append(in_loader and event["name"].rpartition(".")[2] in ("__next__", "__iter__"))
        else:
            stack.pop()
    return total / 1e6, waited / 1e6


def table(rows: list[Row], costs: list[Cost]) -> str:
    """Return all as lines."""
    lines = ["script     rank phase       stopwatch    noted  points"]
    lines += [
        f"{each.script:10} {each.rank:4} {each.phase:10} {100 * each.stopwatch / each.run:8.1f} % "
        f"{100 * each.noted / each.run:6.1f} % {each.off:7.2f}"
        for each in rows
    ]
    lines += [f"{each.parts}, {each.between}: {each.low:.2f} µs a batch, median {each.median:.2f}" for each in costs]
    lines.append("load {:.1f} {:.1f} {:.1f}".format(*os.getloadavg()))
    return "\n".join(lines)


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", default=",".join((*SCRIPTS, "pairs")), help="scripts, `pairs` and `py-spy`, by commas"
    )
    parser.add_argument("--output", choices=("text", "json"), default="text")
    args = parser.parse_args()
    image, asked = examples_image(), args.only.split(",")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        rows = [row for each in SCRIPTS if each in asked for row in rows_of(each, image, folder)]
        spied = [each for each in SCRIPTS if "py-spy" in asked or f"{each}*" in asked]
        rows += [row for each in spied for row in beside_py_spy(each, image, folder)]
        alone = [(DATA_WAIT,), (HEARTBEAT,), (HEARTBEAT, DATA_WAIT)] if "pairs" in asked else []
        costs = [each for parts in alone for each in microseconds(image, folder, *parts)]
    found = {"rows": [{**each._asdict(), "points": each.off} for each in rows], "costs": [*map(Cost._asdict, costs)]}
    print(json.dumps(found, indent=2) if args.output == "json" else table(rows, costs))
    return int(any(each.low > MICROSECONDS for each in costs) or any(each.off > POINTS for each in rows))


if __name__ == "__main__":
    sys.exit(main())
