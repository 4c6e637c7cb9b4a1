"""What `trainlaunch up` adds to the `docker run` that it stands for: the same container, both ways, in turns.

    python bench/launch_overhead.py                      20 rounds with the tests' own image; needs a Docker engine
    python bench/launch_overhead.py --image my/torch:1   your own image, with /bin/sh in it
    python bench/launch_overhead.py --output json        the same as one JSON document

It builds the wheel and measures that, installed: what users start. A round runs the rendered `docker run` text and
`trainlaunch up` once each, of a job whose command is `true`, so what is left is the start: Python, reading the job, the
checks of the host, the engine's calls and the end. `docker run` removes its container within the measured time, by
--rm; after `up`, `down` removes it outside of it. What is compared is the median by the clock, which needs a machine
that does nothing else: the table shows the quartiles too. Exit 1 when `up` adds more than 0.3 s.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "launcher")]

from tests.engine.images import base_image  # noqa: E402 - the checkout's own
from tests.installed.wheel import install_wheel  # noqa: E402

ROUNDS = 20
MOST_SECONDS = 0.3
SCHEMA_VERSION = 1
NAME = "launch-overhead"
JOB = """\
name: {name}
image: {image}
command: ["true"]
resources: {{cpus: 1, memory: 512Mi}}
data_loader: {{num_workers: 0}}
"""


class Timed(NamedTuple):
    """One way to start the job: seconds by the clock, by quartile (25 %, median, 75 %), and its CPU's median."""

    name: str
    wall: tuple[float, float, float]
    cpu: float


def own_environment() -> dict[str, str]:
    """Return this process's variables without Python's: one would let a start compile everything again."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def run_once(argv: Sequence[str], folder: Path) -> tuple[float, float]:
    """Return seconds by the clock and of CPU of one process. Raises SystemExit where it fails."""
    begin = time.perf_counter()
    with subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=own_environment(), cwd=folder
    ) as process:
        said = process.stderr.read() if process.stderr else b""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - begin
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode} of {' '.join(argv)}:\n{said.decode(errors='replace')}")
    return wall, used.ru_utime + used.ru_stime


def measure(python: Path, folder: Path, rounds: int) -> list[Timed]:
    """Return the times of both ways, each run once a round after one that doesn't count; `python` has the wheel."""
    job, launch = str(folder / "job.yaml"), [str(python), "-m", "trainlaunch"]
    rendering = subprocess.run([*launch, "render", job], check=True, capture_output=True, env=own_environment())
    (folder / "job.sh").write_bytes(rendering.stdout)
    ways: dict[str, Callable[[], tuple[float, float]]] = {
        "docker run": lambda: run_once(["sh", "job.sh"], folder),
        "trainlaunch up": lambda: run_once([*launch, "up", job], folder),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            times = way()
            if name != "docker run":
                run_once([*launch, "down", job], folder)
            if number:
                taken[name].append(times)
    return [timed(name, times) for name, times in taken.items()]


def timed(name: str, times: Sequence[tuple[float, float]]) -> Timed:
    """Return the quartiles of (clock, CPU) pairs."""
    wall, cpu = zip(*times, strict=True)
    low, middle, high = statistics.quantiles(wall, n=4, method="inclusive")
    return Timed(name, (low, middle, high), statistics.median(cpu))


def missed(results: Sequence[Timed]) -> Iterator[str]:
    """Yield the goal that these results miss."""
    plain, ours = results
    added = ours.wall[1] - plain.wall[1]
    if added > MOST_SECONDS:
        yield f"`up` adds {added:.2f} s, the goal is {MOST_SECONDS} s"


def table(results: Sequence[Timed]) -> Iterator[str]:
    """Yield the results as lines."""
    yield f"{'start':<16} {'clock s':>8} {'quartiles':>13} {'own CPU s':>10} {'added s':>8}"
    for name, (low, middle, high), cpu in results:
        added = middle - results[0].wall[1]
        yield f"{name:<16} {middle:>8.3f} {f'{low:.3f}–{high:.3f}':>13} {cpu:>10.3f} {added:>8.3f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", help="an image that the engine has (default: the tests' own, made once)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds (default {ROUNDS})")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    args = parser.parse_args(argv)
    image = args.image
    if image is None:
        image = base_image()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "job.yaml").write_text(JOB.format(name=NAME, image=image), encoding="utf-8")
        results = measure(install_wheel(folder), folder, args.rounds)
    failures = list(missed(results))
    if args.output == "json":
        told = {"schema_version": SCHEMA_VERSION, "results": [each._asdict() for each in results], "missed": failures}
        print(json.dumps(told, indent=2))
    else:
        print("\n".join(table(results)))
        print("\n".join(f"missed: {each}" for each in failures) or "no goal missed")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
