"""Runs a script with real torch, and what trainlaunch delivers in front of its path, in a container."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from trainlaunch.container.instrumentation_files import inside_files
from trainlaunch.measure.marked_lines import MarkedStream
from trainlaunch.plan.instrumentation import Instrumentation
from trainlaunch.plan.launch_plan import LaunchPlan

from tests.conftest import Runs
from tests.engine.case_server import IN_CONTAINER, CaseServers
from tests.preflight.conftest import run_cases, shell, start_programs

__all__ = ["run_cases", "shell", "start_programs"]
SECONDS = 300  # on a machine that does much else
# Python's own, of workers that are killed because their script has ended; and what torch leaves of a run.
OF_OTHERS = ("/tmp/pymp-", "/tmp/torchinductor_", "/tmp/torchelastic_")
PLACE = ("--workdir=/job", "--shm-size=1g")
# All CPUs read samples for so long in each script that a probe ends: what only a check's own tests need. Workers that
# take a second to start are true of a machine that does much else.
_CHECKS = "probe.checks"
SHORT: Mapping[str, object] = {
    f"{_CHECKS}.worker_samples.READING": 0.3,
    f"{_CHECKS}.worker_samples.BRIEFLY": 0.1,
    f"{_CHECKS}.lost_time.MIN_START_SECONDS": 60.0,
}
NO_CHECKS: Mapping[str, object] = {"probe.checks.CHECKS": ()}


class Ran(NamedTuple):
    """How a script ended; `err` is without the records, which stand in order in `records`."""

    code: int
    out: str
    err: str
    records: list[dict[str, Any]]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the records of one kind."""
        return [each for each in self.records if each["kind"] == kind]

    def one(self, kind: str) -> dict[str, Any]:
        """Return the only record of that kind."""
        found = self.of(kind)
        assert len(found) == 1, (found, self.err)
        return found[0]

    def findings(self, defect: str) -> list[dict[str, Any]]:
        """Return the facts of all that was found of one defect."""
        return [each["facts"] for each in self.of("finding") if each["defect"] == defect]


Inner = Callable[..., Ran]
Starts = Callable[[tuple[str, ...], Mapping[str, str], Mapping[str, object]], Ran]


def deliver(folder: Path, *parts: str) -> None:
    """Write what the wrapper unpacks for these parts."""
    plan = SimpleNamespace(inside=Instrumentation(parts=parts))
    for name, text in inside_files(cast("LaunchPlan", plan)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def separated(code: int, out: str, err: str) -> Ran:
    """Return how a script ended, with the records taken out of its standard error."""
    records: list[dict[str, Any]] = []
    stream = MarkedStream(records.append)
    shown = stream.feed(err.encode()) + stream.end()
    return Ran(code, out, shown.decode(), records)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder whose parts the long-lived container has as /job and /delivered."""
    made = tmp_path_factory.mktemp("shared")
    for name in ("job", "delivered"):
        (made / name).mkdir()
    return made


@pytest.fixture
def forked(case_servers: CaseServers, torch_image: str, shared_folder: Path) -> Iterator[Starts]:
    """Start a command, or `python train.py` where it is empty, in the long-lived container with torch.

    `python train.py` is forked from a Python that has imported torch; /job and /delivered are empty for each test.
    """
    _empty(shared_folder)
    server = [IN_CONTAINER / "fork_server.py", IN_CONTAINER / "pristine.py"]
    mounts = [f"--volume={server[0]}:/server/sitecustomize.py:ro", f"--volume={server[1]}:/server/pristine.py:ro"]
    mounts += [f"--volume={shared_folder / name}:/{name}" for name in ("job", "delivered")]
    variables = ("--env=PYTHONPATH=/server", "--env=OMP_NUM_THREADS=1")
    settings = (*mounts, *variables, *PLACE, torch_image, "python", "train.py")

    def start(command: tuple[str, ...], env: Mapping[str, str], values: Mapping[str, object]) -> Ran:
        request = {"command": command, "env": dict(env), "seconds": SECONDS, "values": dict(values)}
        answer = case_servers.ask(settings, request, 2 * SECONDS)
        assert isinstance(answer["code"], int), answer
        left = [each for each in answer["left"] if not each.startswith(OF_OTHERS)]
        assert (left, answer["differs"]) == ([], []), f"left behind: {left} {answer['differs']}\n{answer['err']}"
        return separated(answer["code"], answer["out"], answer["err"])

    yield start
    _empty(shared_folder)


@pytest.fixture
def inside(docker_run: Runs, torch_image: str, tmp_path: Path, shared_folder: Path, forked: Starts) -> Inner:
    """Run the text of a script as `/job/train.py`, with `parts` delivered: `inside(text, "probe", batches=8)`.

    Keywords of settings become the JSON of TRAINLAUNCH_PROBE or TRAINLAUNCH_TUNE. `command` replaces
    `python train.py`, `files` are written beside the script, `env` are variables. The image is the tests' own with
    torch unless `image` names another; with that, with `flags` of `docker run`, or `alone`, the container is the
    script's own. `values` are other ones of the part's constants, for `python train.py` in the long-lived container.
    """

    def run(
        script: str,
        part: str = "probe",
        *,
        command: tuple[str, ...] = (),
        files: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        flags: tuple[str, ...] = (),
        image: str | None = None,
        alone: bool = False,
        values: Mapping[str, object] = SHORT,
        **settings: object,
    ) -> Ran:
        alone = alone or bool(flags or image)
        folder = tmp_path if alone else shared_folder
        deliver(folder / "delivered", part)
        (folder / "job").mkdir(exist_ok=True)
        for name, text in {"train.py": script, **(files or {})}.items():
            (folder / "job" / name).write_text(text, encoding="utf-8")
        variables = {
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": "/delivered",
            "TRAINLAUNCH_INSIDE": part,
            f"TRAINLAUNCH_{part.upper()}": json.dumps(settings),
            **(env or {}),
        }
        if not alone:
            return forked(command, variables, values if part == "probe" else {})
        mounts = [f"--volume={folder / name}:/{name}" for name in ("job", "delivered")]
        argv = [*(f"--env={name}={value}" for name, value in variables.items()), *mounts, *PLACE, *flags]
        done = docker_run(*argv, image or torch_image, *(command or ("python", "train.py")), timeout=SECONDS)
        return separated(done.returncode, done.stdout, done.stderr)

    return run


def _empty(folder: Path) -> None:
    for each in folder.iterdir():
        for left in each.iterdir():
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink()
