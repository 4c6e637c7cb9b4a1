"""Fixtures for runs on a real engine: jobs with names of their own, and nothing of them left behind."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.errors import TargetUnavailable
from trainlaunch.job.reserved import LABEL_PREFIX
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.docker.client import Engine, EngineRefused, find_endpoint

from tests.jobs import plan_with, write_job
from tests.run.gate import Gate
from tests.run.proxy import ENGINE, Proxy

ROOT = Path(__file__).resolve().parents[2]
SMALL: dict[str, Any] = {
    "resources": {"cpus": 1, "memory": "256Mi"},
    "shm_size": "64Mi",
    "stop_grace_period": "20s",
    "data_loader": {"num_workers": 0, "batch_size": 1, "sample": [{"shape": [1], "dtype": "float32"}]},
}


@pytest.fixture
def job_name(engine: str) -> Iterator[str]:
    """Return a job name of its own; every container of that job is removed afterwards."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    yield name
    _remove(name)


def _remove(job: str) -> None:
    """Remove what is left of a job by the engine's API: each docker command would be a process, after each test.

    The run itself may be at it too.
    """
    of_job = {"label": f"{LABEL_PREFIX}job={job}"}
    with contextlib.suppress(TargetUnavailable), contextlib.closing(Engine(find_endpoint())) as engine:
        client: Any = engine.client
        for each in client.containers(all=True, filters=of_job):
            with contextlib.suppress(EngineRefused), engine.attempting("remove a container"):
                client.remove_container(each["Id"], v=True, force=True)
        for each in client.networks(filters=of_job):
            with contextlib.suppress(EngineRefused), engine.attempting("remove a network"):
                client.remove_network(each["Id"])


@pytest.fixture
def fields(job_name: str, base_image: str) -> dict[str, Any]:
    """Return the fields of a small job that the base image can run."""
    return {**SMALL, "name": job_name, "image": base_image}


@pytest.fixture
def make_job(fields: dict[str, Any], tmp_path: Path) -> Callable[..., Path]:
    """Write the small job with other fields over it and return its path."""

    def make(**over: Any) -> Path:
        if "script" in over:
            over.setdefault("command", None)
        return write_job(tmp_path, **{**fields, **over})

    return make


@pytest.fixture
def make_plan_of(fields: dict[str, Any], tmp_path: Path) -> Callable[..., LaunchPlan]:
    """Return the plan of the small job with other fields over it."""

    def make(**over: Any) -> LaunchPlan:
        if "script" in over:
            over.setdefault("command", None)
        return plan_with(tmp_path, **{**fields, **over})

    return make


@pytest.fixture
def caller(tmp_path: Path, engine: str) -> dict[str, str]:
    """Return what a process needs to run this checkout with state and caches of the test's own."""
    folders = {name: str(tmp_path / "own" / name.lower()) for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME")}
    return {"PYTHONPATH": str(ROOT / "launcher"), **folders}


@pytest.fixture
def run_image(tmp_path: Path, job_name: str, base_image: str) -> list[str]:
    """Return the words of a run in the base image, for a command in the folder `f`."""
    (tmp_path / "f").mkdir()
    return [sys.executable, "-m", "trainlaunch", "run", "--image", base_image, "--name", job_name]


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Return a gate that is closed, which a job with its mounts waits at."""
    return Gate.made_in(tmp_path)


@pytest.fixture
def proxy(tmp_path: Path, engine: str) -> Iterator[Proxy]:
    """Return a proxy to the engine of $DOCKER_HOST, or Docker's."""
    proxy = Proxy(tmp_path / "engine.sock", Path(os.environ.get("DOCKER_HOST", str(ENGINE)).removeprefix("unix://")))
    yield proxy
    proxy.cut()


def docker(*args: str) -> str:
    """Run the docker CLI and return its stdout; an error is left to the assertions of the caller."""
    return subprocess.run(["docker", *args], capture_output=True, text=True, timeout=120, check=False).stdout.strip()


def containers_of(job: str) -> list[str]:
    """Return the ids of all containers of a job."""
    return docker("ps", "--all", "--quiet", f"--filter=label={LABEL_PREFIX}job={job}").split()


def networks_of(job: str) -> list[str]:
    """Return the names of all networks of a job."""
    return docker("network", "ls", "--format={{.Name}}", f"--filter=label={LABEL_PREFIX}job={job}").split()


def inspected(container: str) -> dict[str, Any]:
    """Return the engine's description of a container."""
    found: list[dict[str, Any]] = json.loads(docker("inspect", container))
    return found[0]
