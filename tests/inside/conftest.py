"""Runs a script with real torch, and what trainlaunch delivers in front of its path, in a container."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from trainlaunch.container.instrumentation_files import inside_files
from trainlaunch.measure.marked_lines import MarkedStream
from trainlaunch.plan.instrumentation import Instrumentation
from trainlaunch.plan.launch_plan import LaunchPlan

from tests.conftest import Runs

SECONDS = 180  # on a machine that does much else


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


@pytest.fixture
def inside(docker_run: Runs, torch_image: str, tmp_path: Path) -> Inner:
    """Run the text of a script as `/job/train.py`, with `parts` delivered: `inside(text, "probe", batches=8)`.

    Keywords of settings become the JSON of TRAINLAUNCH_PROBE or TRAINLAUNCH_TUNE. `command` replaces
    `python train.py`, `files` are written beside the script, `flags` go to `docker run`. The image is the tests' own
    with torch unless `image` names another.
    """

    def run(
        script: str,
        part: str = "probe",
        *,
        command: tuple[str, ...] = ("python", "train.py"),
        files: Mapping[str, str] | None = None,
        flags: tuple[str, ...] = (),
        image: str | None = None,
        **settings: object,
    ) -> Ran:
        own, job = tmp_path / "delivered", tmp_path / "job"
        deliver(own, part)
        job.mkdir(exist_ok=True)
        for name, text in {"train.py": script, **(files or {})}.items():
            (job / name).write_text(text, encoding="utf-8")
        env = {
            "PYTHONPATH": "/delivered",
            "TRAINLAUNCH_INSIDE": part,
            f"TRAINLAUNCH_{part.upper()}": json.dumps(settings),
        }
        variables = [f"--env={name}={value}" for name, value in {"OMP_NUM_THREADS": 1, **env}.items()]
        mounts = [f"--volume={own}:/delivered", f"--volume={job}:/job", "--workdir=/job", "--shm-size=1g"]
        argv = [*variables, *mounts, *flags, image or torch_image, *command]
        done = docker_run(*argv, timeout=SECONDS)
        return separated(done.returncode, done.stdout, done.stderr)

    return run
