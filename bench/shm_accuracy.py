"""Compares the /dev/shm that trainlaunch plans with the /dev/shm that PyTorch takes, in real containers.

    python bench/shm_accuracy.py                        every configuration, then the exactness of four shapes
    python bench/shm_accuracy.py --only two-ranks       one configuration (repeatable)
    python bench/shm_accuracy.py --libraries            real libraries, with what docs/frameworks.md says to state
    python bench/shm_accuracy.py --output json          the same as one JSON document

Each configuration of shm_accuracy/configurations.yaml becomes a job file; trainlaunch's own reader and planner give
`need`, `multi_epoch` and `worst_case`; the plan's argv then trains in a container whose /dev/shm is four times larger
than `need`, so that nothing but the law limits it, and where the file says `epochs` again in one of multi_epoch. Exit 1
when a peak exceeds worst_case, or multi_epoch where the file says so, when need is above the peak by more than a batch
of each loader + 1 MiB, when a program fails, or when exactly need fails or one page less passes.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "launcher")]

from trainlaunch.plan.launch_plan import LaunchPlan  # noqa: E402
from trainlaunch.plan.shared_memory import PAGE  # noqa: E402
from trainlaunch.policy import read_job  # noqa: E402 - the checkout's own package, whatever is installed
from trainlaunch.rules import plan_job  # noqa: E402
from trainlaunch.units import MIB  # noqa: E402

from tests import plain_yaml  # noqa: E402

HERE = Path(__file__).resolve().parent / "shm_accuracy"
CONFIGURATIONS = HERE / "configurations.yaml"
LIBRARIES = HERE / "libraries.yaml"
INSIDE = "/bench"  # where HERE is mounted
LARGER = 4
SMALLEST = 64 * MIB
EXACT_RUNS = 3
DEADLINE = 300  # seconds; a container that takes longer hangs
SLACK = MIB  # what need may be above the peak besides one batch of each loader
SCHEMA_VERSION = 2
ENVIRONMENT = ("torch", "python", "kernel", "cpus", "page")  # what sample.py tells of where it runs


@dataclass(frozen=True, slots=True)
class Configuration:
    """One entry of the configurations file, with the plan of the job that it describes."""

    name: str
    plan: LaunchPlan
    program: Mapping[str, Any]
    loose: str
    exact: bool
    epochs: bool

    @property
    def batches(self) -> int:
        """Bytes of one batch of each loader that has workers, in all ranks."""
        return self.plan.ranks.value * sum(each.unit for each in self.plan.shm.loaders if each.workers)


@dataclass(frozen=True, slots=True)
class Measured:
    """What one container told: `found` is sample.py's JSON, empty where there is none; `said` the end of its stderr."""

    found: Mapping[str, Any]
    said: str

    @property
    def passed(self) -> bool:
        """Whether the training program ended with 0."""
        return self.found.get("exit_code") == 0


@dataclass(frozen=True, slots=True)
class Row:
    """A configuration, measured; sizes in bytes, `difference` = (need − peak) in batches of each loader."""

    name: str
    need: int
    multi_epoch: int
    worst_case: int
    peak: int
    difference: float | None
    problem: str


@dataclass(frozen=True, slots=True)
class Exactness:
    """How many `runs` of a shape passed with /dev/shm of `need` bytes, and of one page less; how the others ended."""

    name: str
    need: int
    runs: int
    passed_at_need: int
    passed_one_page_less: int
    ends: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether need always sufficed and a page less never did."""
        return self.passed_at_need == self.runs and self.passed_one_page_less == 0


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and return 0 when everything that was measured agrees with the plan, else 1."""
    args = _arguments(argv)
    image = args.image or _local_image(libraries=args.libraries)
    chosen = _chosen(args.only, LIBRARIES if args.libraries else CONFIGURATIONS)
    rows: list[Row] = []
    environment: dict[str, Any] = {"engine": _engine()}
    for each in chosen:
        measured = run(image, each, shm_bytes=max(LARGER * each.plan.shm.need, SMALLEST))
        environment.update({key: measured.found[key] for key in ENVIRONMENT if key in measured.found})
        rows.append(judged(each, measured))
        if each.epochs and not rows[-1].problem:
            lasting = run(image, each, shm_bytes=each.plan.shm.multi_epoch)
            if not lasting.passed:
                rows[-1] = dataclasses.replace(rows[-1], problem=f"exactly multi_epoch fails: {_end(lasting)}")
        _progress(f"{each.name}: {rows[-1].problem or 'ok'}")
    shapes = [exactness(image, each, runs=EXACT_RUNS) for each in chosen if each.exact]
    good = all(not each.problem for each in rows) and all(each.holds for each in shapes)
    print(_json(rows, shapes, environment) if args.output == "json" else _text(rows, shapes, environment))
    return 0 if good else 1


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="measure this configuration (repeatable)")
    parser.add_argument("--libraries", action="store_true", help="measure real libraries instead (libraries.yaml)")
    parser.add_argument("--output", choices=("text", "json"), default="text", help="form of the result on stdout")
    parser.add_argument("--image", help="an image with python3 and torch; without it, the tests' own, made if missing")
    return parser.parse_args(argv)


def _local_image(*, libraries: bool) -> str:
    from tests.engine.images import examples_image, torch_image

    return examples_image() if libraries else torch_image()


def _chosen(only: Sequence[str] | None, path: Path) -> list[Configuration]:
    every = {each.name: each for each in configurations(path)}
    if unknown := sorted(set(only or ()) - set(every)):
        raise SystemExit(f"no configuration is called {', '.join(unknown)}; there are {', '.join(every)}")
    return [each for name, each in every.items() if not only or name in only]


def configurations(path: Path) -> Iterator[Configuration]:
    """Yield the file's configurations; each job is written to a file and read and planned by trainlaunch itself."""
    with tempfile.TemporaryDirectory() as folder:
        job_file = Path(folder) / "job.yaml"
        for entry in plain_yaml.load(path.read_text(encoding="utf-8")):
            told = {"name": entry["name"], "image": "bench:1", "command": ["true"], **entry["job"]}
            job_file.write_text(json.dumps(told), encoding="utf-8")
            plan = plan_job(read_job(job_file, target="docker"))
            marks = (entry.get("loose", ""), entry.get("exact", False), entry.get("epochs", False))
            yield Configuration(entry["name"], plan, entry.get("program", {}), *marks)


def argv_of(configuration: Configuration) -> tuple[str, ...]:
    """Return what runs in the container: the sampler, then the plan's argv with train.py as its command."""
    plan, spec = configuration.plan, configuration.plan.job.data_loader
    program = {
        "gloo": plan.ranks.value > 1,
        "sharing_strategy": spec.sharing_strategy,
        "multiprocessing_context": spec.multiprocessing_context,
        **configuration.program,
    }
    loaders = [
        {
            "batch_size": each.batch_size,
            "sample": program.get("sample") or [tensor._asdict() for tensor in each.sample or ()],
            "num_workers": planned.workers,
            "prefetch_factor": each.prefetch_factor,
            "persistent_workers": each.persistent_workers,
            "collate": each.collate,
            "batches_held": each.batches_held,
        }
        for each, planned in zip(spec.loaders, plan.shm.loaders, strict=True)
    ]
    launched = plan.argv[: -len(plan.job.command or ())]  # torchrun's own part
    train = ("python3", f"{INSIDE}/train.py", json.dumps({"loaders": loaders, "program": program}))
    return ("python3", f"{INSIDE}/sample.py", *launched, *train)


def run(image: str, configuration: Configuration, *, shm_bytes: int) -> Measured:
    """Train in a container with a /dev/shm of `shm_bytes`; one that exceeds DEADLINE is removed and told as a hang."""
    name = f"shm-accuracy-{configuration.name}-{os.getpid()}"
    mount = f"--mount=type=bind,source={HERE},target={INSIDE},readonly"
    flags = ("--rm", "--init", f"--name={name}", f"--shm-size={shm_bytes}", mount, "--env=PYTHONDONTWRITEBYTECODE=1")
    command = ("docker", "run", *flags, "--entrypoint=", image, *argv_of(configuration))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    except subprocess.TimeoutExpired:
        subprocess.run(("docker", "rm", "--force", name), capture_output=True, check=False)
        return Measured({}, f"hangs: no end after {DEADLINE} s")
    found = json.loads(done.stdout) if done.returncode == 0 else {}
    return Measured(found, done.stderr[-4000:].strip())


def judged(configuration: Configuration, measured: Measured) -> Row:
    """Return the row of a configuration with what is wrong with it, if anything."""
    shm = configuration.plan.shm
    peak = measured.found.get("peak", 0)
    unit = configuration.batches
    problem = ""
    if not measured.passed:
        problem = f"the program failed: {_end(measured)}"
    elif measured.found["before"]:
        problem = f"/dev/shm held {measured.found['before']} bytes before the program"
    elif peak > shm.worst_case:
        problem = f"peak {peak} exceeds worst_case {shm.worst_case}"
    elif configuration.epochs and peak > shm.multi_epoch:
        problem = f"peak {peak} exceeds multi_epoch {shm.multi_epoch}"
    elif not configuration.loose and shm.need - peak > unit + SLACK:
        problem = f"need {shm.need} is {shm.need - peak} above the peak, more than {unit} + {SLACK}"
    difference = (shm.need - peak) / unit if unit else None
    return Row(configuration.name, shm.need, shm.multi_epoch, shm.worst_case, peak, difference, problem)


def exactness(image: str, configuration: Configuration, *, runs: int) -> Exactness:
    """Run with /dev/shm of exactly need, and of one page less, `runs` times each."""
    need = configuration.plan.shm.need
    enough = [run(image, configuration, shm_bytes=need) for _ in range(runs)]
    short = [run(image, configuration, shm_bytes=need - PAGE) for _ in range(runs)]
    ends = tuple(sorted({_end(each) for each in short if not each.passed}))
    passed, wrongly = (sum(each.passed for each in group) for group in (enough, short))
    _progress(f"{configuration.name}: at need {passed}/{runs} pass, one page less {wrongly}/{runs} pass")
    return Exactness(configuration.name, need, runs, passed, wrongly, ends)


def _end(measured: Measured) -> str:
    """Return what a failed run died of: a full /dev/shm, the engine's refusal, or its last line."""
    if "No space left on device" in measured.said:
        return "No space left on device"
    lines = measured.said.splitlines() or ["it said nothing"]
    return next((each for each in lines if each.startswith("docker: ")), lines[-1])


def _engine() -> str:
    command = ("docker", "version", "--format={{.Server.Version}}")
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _row_text(row: Row) -> str:
    widths = (9, 11, 10, 9)
    sizes = (
        f"{size / MIB:{width}.3f}"
        for width, size in zip(widths, (row.need, row.multi_epoch, row.worst_case, row.peak), strict=True)
    )
    difference = "       –" if row.difference is None else f"{row.difference:8.3f}"
    return " ".join((f"{row.name:38}", *sizes, difference, f" {row.problem or 'ok'}"))


def _text(rows: Sequence[Row], shapes: Sequence[Exactness], environment: Mapping[str, Any]) -> str:
    lines = [
        ", ".join(f"{key} {value}" for key, value in environment.items()),
        "",
        f"{'MiB':38} {'need':>9} {'multi_epoch':>11} {'worst_case':>10} {'peak':>9} {'batches':>8}",
    ]
    lines += [_row_text(each) for each in rows]
    lines += [
        "",
        "batches: (need − peak) / one batch of each loader. `ok`: peak ≤ worst_case, and need within its limit.",
    ]
    for each in shapes:
        lines.append(
            f"{each.name}: {each.need // PAGE} pages pass {each.passed_at_need}/{each.runs}, "
            f"{each.need // PAGE - 1} pages pass {each.passed_one_page_less}/{each.runs} ({'; '.join(each.ends)})"
        )
    return "\n".join(lines)


def _json(rows: Sequence[Row], shapes: Sequence[Exactness], environment: Mapping[str, Any]) -> str:
    document = {
        "schema_version": SCHEMA_VERSION,
        "environment": environment,
        "configurations": [dataclasses.asdict(each) for each in rows],
        "exactness": [dataclasses.asdict(each) for each in shapes],
    }
    return json.dumps(document, indent=2)


if __name__ == "__main__":
    sys.exit(main())
