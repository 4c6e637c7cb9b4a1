"""What trainlaunch adds to a start: `up` to `docker run`, `run` to the bare command, here and in a container.

    python bench/launch_overhead.py                      20 rounds with the tests' own image; needs a Docker engine
    python bench/launch_overhead.py --image my/torch:1   your own image, with /bin/sh and python3 in it
    python bench/launch_overhead.py --output json        the same as one JSON document

It builds the wheel and measures that, installed: what users start. A round starts each pair once, in turns. `up` and
the rendered `docker run` text run a job whose command is `true`, to its end: Python, reading the job, the checks of
the host, the engine's calls. `run` and the bare command run a script that prints a line, and what counts is when that
line comes: the end of a run is nobody's wait. `docker run` removes its container within the measured time, by --rm;
what ours leave, `down` removes outside of it. What is compared is the median by the clock, which needs a machine that
does nothing else: the table shows the quartiles too. Exit 1 when `up` adds more than 0.3 s, or `run` more than 1 s.
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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "launcher")]

from tests.engine.images import base_image  # noqa: E402 - the checkout's own
from tests.installed.wheel import install_wheel  # noqa: E402

ROUNDS = 20
UP_SECONDS, RUN_SECONDS = 0.3, 1.0
SCRIPT = "import time; print('first line', flush=True)\n"
SCHEMA_VERSION = 2
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


class Start(NamedTuple):
    """One way to start something: `first_line` says whether its first output counts, else its end."""

    name: str
    argv: Sequence[str]
    first_line: bool = False
    removed: Sequence[str] = ()


class Pair(NamedTuple):
    """A start as it is without us, ours, and the seconds that ours may take longer."""

    plain: Start
    ours: Start
    most: float


def run_once(start: Start, folder: Path) -> tuple[float, float]:
    """Return seconds by the clock and of CPU of one process. Raises SystemExit where it fails."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            start.argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, stderr=said, env=own_environment(), cwd=folder
        )
        assert process.stdout is not None
        process.stdout.readline()
        wall = time.perf_counter() - begin
        process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = wall if start.first_line else time.perf_counter() - begin
        process.stdout.close()
        if process.returncode:
            said.seek(0)
            words = said.read().decode(errors="replace")
            raise SystemExit(f"exit code {process.returncode} of {' '.join(start.argv)}:\n{words}")
    return wall, used.ru_utime + used.ru_stime


def pairs(python: Path, folder: Path, image: str) -> list[Pair]:
    """Return what is compared; `python` has the wheel, and `folder` a job.yaml. Raises SystemExit."""
    job, launch = str(folder / "job.yaml"), [str(python), "-m", "trainlaunch"]
    rendering = subprocess.run([*launch, "render", job], check=True, capture_output=True, env=own_environment())
    (folder / "job.sh").write_bytes(rendering.stdout)
    (folder / "first.py").write_text(SCRIPT, encoding="utf-8")
    command = ["python3", "first.py"]
    here, inside = f"{NAME}-here", f"{NAME}-inside"
    bare = ["docker", "run", "--rm", "--init", f"--volume={folder}:{folder}", f"--workdir={folder}", image]

    def ours(name: str, *words: str) -> Start:
        told = [*launch, "run", "--name", name, *words, "--", *command]
        return Start(" ".join(("trainlaunch run", *words[:1])), told, True, [*launch, "down", "--all", name])

    return [
        Pair(
            Start("docker run", ["sh", "job.sh"]),
            Start("trainlaunch up", [*launch, "up", job], False, [*launch, "down", job]),
            UP_SECONDS,
        ),
        Pair(Start("bare command", command, True), ours(here), RUN_SECONDS),
        Pair(Start("docker run, line", [*bare, *command], True), ours(inside, "--image", image), RUN_SECONDS),
    ]


def measure(compared: Sequence[Pair], folder: Path, rounds: int) -> list[tuple[Timed, Timed]]:
    """Return the times of each pair, each start made once a round after one that doesn't count."""
    starts = [each for pair in compared for each in pair[:2]]
    taken: dict[str, list[tuple[float, float]]] = {each.name: [] for each in starts}
    for number in range(rounds + 1):
        for start in starts:
            times = run_once(start, folder)
            if start.removed:
                run_once(Start("", start.removed), folder)
            if number:
                taken[start.name].append(times)
    made = [timed(name, times) for name, times in taken.items()]
    return list(zip(made[::2], made[1::2], strict=True))


def timed(name: str, times: Sequence[tuple[float, float]]) -> Timed:
    """Return the quartiles of (clock, CPU) pairs."""
    wall, cpu = zip(*times, strict=True)
    low, middle, high = statistics.quantiles(wall, n=4, method="inclusive")
    return Timed(name, (low, middle, high), statistics.median(cpu))


def missed(compared: Sequence[Pair], results: Sequence[tuple[Timed, Timed]]) -> Iterator[str]:
    """Yield the goals that these results miss."""
    for pair, (plain, ours) in zip(compared, results, strict=True):
        added = ours.wall[1] - plain.wall[1]
        if added > pair.most:
            yield f"{pair.ours.name} adds {added:.2f} s, the goal is {pair.most} s"


def table(results: Sequence[tuple[Timed, Timed]]) -> Iterator[str]:
    """Yield the results as lines."""
    yield f"{'start':<24} {'clock s':>8} {'quartiles':>13} {'own CPU s':>10} {'added s':>8}"
    for pair in results:
        for name, (low, middle, high), cpu in pair:
            added = middle - pair[0].wall[1]
            yield f"{name:<24} {middle:>8.3f} {f'{low:.3f}–{high:.3f}':>13} {cpu:>10.3f} {added:>8.3f}"


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
        compared = pairs(install_wheel(folder), folder, image)
        results = measure(compared, folder, args.rounds)
    failures = list(missed(compared, results))
    if args.output == "json":
        told = {
            "schema_version": SCHEMA_VERSION,
            "results": [each._asdict() for pair in results for each in pair],
            "missed": failures,
        }
        print(json.dumps(told, indent=2))
    else:
        print("\n".join(table(results)))
        print("\n".join(f"missed: {each}" for each in failures) or "no goal missed")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
