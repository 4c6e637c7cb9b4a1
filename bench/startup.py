"""How long each command of an installed wheel takes to start cold, against bare Python and against TorchX's dry run.

    python bench/startup.py                  30 rounds; installs both into folders that are deleted afterwards
    python bench/startup.py --torchx DIR     a virtual environment to make, or to use again
    python bench/startup.py --output json    the same as one JSON document

A round starts every command once, so that all of them meet the same machine. What counts is the CPU time of the process
(user and system), which other work on the machine changes less than the clock; both are printed, the median with its
quartiles. Verbs that need an engine are measured by their `--help`. Each command runs once before, so that its bytecode
is there as an installation leaves it. Exit 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "launcher")]

from trainlaunch.cli.arguments.verb_table import VERBS  # noqa: E402 - the checkout's own package, whatever is installed
from trainlaunch.targets import text_targets  # noqa: E402

from tests.installed.wheel import install_wheel  # noqa: E402

JOB = ROOT / "examples" / "quickstart" / "job.yaml"
ROUNDS = 30
BARE, TORCHX = "bare Python", "torchx run --dryrun"
TORCHX_RELEASE = "torchx==0.7.0"
MOST_FOR_ONE = 10.0  # × bare Python, of `render` for one target
MOST_FOR_ALL = 11.0
LEAST_FASTER = 3.0  # × of TorchX's dry run
SCHEMA_VERSION = 1
# What a command is asked to do here; any other one shows its help.
ARGUMENTS: Mapping[str, Sequence[Sequence[str]]] = {
    "plan": [(str(JOB),)],
    "render": [(str(JOB), "--target", target) for target in (*text_targets(), "all")],
    "schema": [()],
}


class Timed(NamedTuple):
    """One command: milliseconds of CPU by quartile (25 %, median, 75 %), and the median by the clock."""

    name: str
    cpu: tuple[float, float, float]
    wall: float


def commands(python: Path, torchx: Path) -> dict[str, list[str]]:
    """Return the argv of everything that is measured, by the name that the table gives it.

    `python` has the wheel, the folder `torchx` a virtual environment with TorchX.
    """
    launch = [str(python), "-m", "trainlaunch"]
    found = {BARE: [str(python), "-c", "pass"], "trainlaunch --version": [*launch, "--version"]}
    for verb in VERBS:
        for arguments in ARGUMENTS.get(verb, [("--help",)]):
            shown = " ".join(each for each in arguments if each != str(JOB))
            found[f"trainlaunch {verb} {shown}".rstrip()] = [*launch, verb, *arguments]
    docker = ("--scheduler", "local_docker", "--workspace=")  # as `render`: no image is built, no engine is asked
    found[TORCHX] = [str(torchx / "bin" / "torchx"), "run", "--dryrun", *docker, "utils.sh", "echo", "hello"]
    return found


def install_torchx(folder: Path) -> None:
    """Make a virtual environment with TorchX in `folder`, unless it is there already."""
    if (folder / "bin" / "torchx").exists():
        return
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, TORCHX_RELEASE], check=True)
    subprocess.run([str(folder / "bin" / "python"), "-m", "compileall", "-q", str(folder / "lib")], check=False)


def run_once(argv: Sequence[str], folder: Path) -> tuple[float, float]:
    """Return milliseconds of CPU and by the clock of one process. Raises SystemExit where it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    begin = time.perf_counter()
    with subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, cwd=folder
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - begin
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}; run it: {' '.join(argv)}")
    return 1000 * (used.ru_utime + used.ru_stime), 1000 * wall


def measure(argvs: Mapping[str, Sequence[str]], rounds: int) -> list[Timed]:
    """Return the times of every command, each started once a round."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in argvs}
    with tempfile.TemporaryDirectory() as folder:
        for argv in argvs.values():
            run_once(argv, Path(folder))
        for _ in range(rounds):
            for name, argv in argvs.items():
                taken[name].append(run_once(argv, Path(folder)))
    return [timed(name, times) for name, times in taken.items()]


def timed(name: str, times: Sequence[tuple[float, float]]) -> Timed:
    """Return quartiles of (CPU, clock) pairs."""
    cpu, wall = zip(*times, strict=True)
    low, middle, high = statistics.quantiles(cpu, n=4, method="inclusive")
    return Timed(name, (low, middle, high), statistics.median(wall))


def missed(results: Sequence[Timed]) -> Iterator[str]:
    """Yield each goal that these results miss."""
    cpu = {each.name: each.cpu[1] for each in results}
    renders = {name: taken for name, taken in cpu.items() if name.startswith("trainlaunch render")}
    for name, taken in renders.items():
        most = MOST_FOR_ALL if name.endswith(" all") else MOST_FOR_ONE
        if taken > most * cpu[BARE]:
            yield f"{name} takes {taken / cpu[BARE]:.1f} × bare Python, the goal is {most:.0f} ×"
        if not name.endswith(" all") and taken * LEAST_FASTER > cpu[TORCHX]:
            yield f"{TORCHX} takes {cpu[TORCHX] / taken:.1f} × {name}, the goal is {LEAST_FASTER:.0f} ×"


def table(results: Sequence[Timed]) -> Iterator[str]:
    """Yield the results as lines."""
    bare = next(each.cpu[1] for each in results if each.name == BARE)
    width = max(len(each.name) for each in results)
    yield f"{'command':<{width}} {'CPU ms':>8} {'quartiles':>15} {'× bare':>7} {'clock ms':>9}"
    for name, (low, middle, high), wall in results:
        yield f"{name:<{width}} {middle:>8.1f} {f'{low:.1f}–{high:.1f}':>15} {middle / bare:>7.1f} {wall:>9.1f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Install, measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"starts of each command (default {ROUNDS})")
    parser.add_argument("--torchx", type=Path, metavar="DIR", help="virtual environment for TorchX, made if need be")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    args = parser.parse_args(argv)
    with contextlib.ExitStack() as stack:
        folder = args.torchx or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        install_torchx(folder)
        python = install_wheel(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        results = measure(commands(python, folder), max(args.rounds, 2))
    failures = list(missed(results))
    if args.output == "json":
        document = {"schema_version": SCHEMA_VERSION, "results": [each._asdict() for each in results]}
        print(json.dumps(document | {"missed": failures}, indent=2, ensure_ascii=False))
    else:
        print("\n".join(table(results)))
        print("\n".join(f"missed: {each}" for each in failures) or "no goal missed")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
