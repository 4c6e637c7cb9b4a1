"""Fixtures for runs on this host: jobs with names of their own, a state folder of their own, nothing left behind."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.local.backend import LocalBackend
from trainlaunch.run.local.processes import marked
from trainlaunch.run.local.state import RunFolder

from tests.conftest import Runs
from tests.jobs import plan_with, write_job
from tests.run.conftest import SMALL

Start = Callable[..., "subprocess.Popen[bytes]"]
MakeJob = Callable[..., Path]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of all runs of this test; what still runs at the end is killed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "state" / "trainlaunch" / "runs"
    yield root
    backend = LocalBackend(root)
    for each in backend.runs():
        if each.status == "running":
            backend.kill(each.id)
            backend.wait(each.id)
        backend.remove(each.id)


@pytest.fixture
def job_name() -> str:
    """Return a job name of its own."""
    return f"t-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def make_job(state: Path, job_name: str, tmp_path: Path) -> MakeJob:
    """Write a small job whose target is local, with other fields over it, and return its path."""

    def make(**over: Any) -> Path:
        if "script" in over:
            over.setdefault("command", None)
        return write_job(tmp_path, **{**SMALL, "name": job_name, "target": "local", **over})

    return make


@pytest.fixture
def make_plan_of(state: Path, job_name: str, tmp_path: Path) -> Callable[..., LaunchPlan]:
    """Return the plan of a small local job with other fields over it."""

    def make(**over: Any) -> LaunchPlan:
        if "script" in over:
            over.setdefault("command", None)
        return plan_with(tmp_path, "local", **{**SMALL, "name": job_name, **over})

    return make


@pytest.fixture
def start(state: Path, start: Start) -> Start:
    """Start `trainlaunch ARGS` with the state folder of this test in place."""
    return start


@pytest.fixture
def run_folder(state: Path, job_name: str) -> Callable[[], RunFolder]:
    """Return the folder of the job's only run."""

    def only() -> RunFolder:
        (found,) = state.glob(f"{job_name}/*")
        return RunFolder(found)

    return only


@pytest.fixture
def nothing_is_left(state: Path, job_name: str, trainlaunch: Runs) -> Callable[[], None]:
    """Assert that `down` leaves no folder and no process of the job's only run."""

    def check() -> None:
        (folder,) = state.glob(f"{job_name}/*")
        done = trainlaunch("down", job_name)
        assert done.returncode == 0, done.stderr
        assert not folder.exists()
        assert marked(folder) == []

    return check
