"""Fixtures that every test folder shares: goldens, the command line, and real containers.

Tests marked `docker` need an engine. Where none answers they fail in CI (CI=true) and are skipped elsewhere with the
reason printed.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from trainlaunch.run.compose.command import find_compose

from tests import groups, sampling
from tests.engine import images
from tests.engine.case_server import CaseServer, CaseServers
from tests.folder_times import FolderTimes
from tests.installed.wheel import install_wheel
from tests.runners import ROOT, Runs, run_here, run_process

__all__ = ["ROOT", "Runs"]
TEST_LABEL = "trainlaunch-test"
# What a shell or CI may have set and the command line, or its Python, obeys; each test states what it is about.
NOT_INHERITED = ("COLUMNS", "FORCE_COLOR", "KUBECONFIG", "NO_COLOR", "PYTHONUNBUFFERED")
# How fast the machine is decides nothing.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
# Without bytecode each of hundreds of starts would compile the package, and each process of pytest all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write what the tests got over their golden files")


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a long text by its beginning: a test's name goes between processes several times."""
    return val[:60].encode("unicode_escape").decode() if isinstance(val, str) and len(val) > 120 else None


def pytest_configure(config: pytest.Config) -> None:
    """Undo what a shell's background job and `nohup` let all programs ignore: what tests start must hear it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # still ignored here, but a started program begins anew
        signal.signal(signal.SIGHUP, lambda *_: None)
    config.pluginmanager.register(FolderTimes())
    config.pluginmanager.register(groups)
    sampling.pytest_configure(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Search for no garbage while tests are collected, nor in them later: they stay, and it takes a sixth of the time.

    The process that deals tests out to others collects none.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a state folder of its own: runs that another test left are none of its."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / f"state-{uuid.uuid4().hex[:12]}"))


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep runs, kubeconfigs and settings of whoever runs the tests out of them, and theirs out of the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        for name in NOT_INHERITED:
            patch.delenv(name, raising=False)
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("docker") is not None:
        _need_engine()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Assert that a text is its golden file, byte for byte; with --update-goldens, write that file instead."""

    def same(path: Path, text: str) -> None:
        if request.config.getoption("--update-goldens"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            return
        assert path.is_file(), f"{path} is missing; write it with --update-goldens and review the diff"
        assert text == path.read_bytes().decode(), f"{path.name} differs; if meant, write it with --update-goldens"

    return same


@pytest.fixture(scope="session")
def trainlaunch() -> Runs:
    """Run the command line inside this process: `trainlaunch("plan", "job.yaml", cwd=folder)`.

    What is about a start, a signal or a stream starts a process by `start`.
    """
    return run_here


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a virtual environment that has this checkout's wheel."""
    return install_wheel(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start `trainlaunch ARGS` and return the process; one that outlives its test is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*args: str, **env: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "trainlaunch", *args],
            env={**os.environ, "PYTHONPATH": str(ROOT / "launcher"), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)


@pytest.fixture(scope="session")
def engine() -> str:
    """Return the version of the Docker engine that answers; nothing is started."""
    return _need_engine()


@pytest.fixture(scope="session")
def compose(engine: str) -> Iterator[str]:
    """Return the Compose that target compose uses; the one that the test packages bring is put behind PATH's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{os.environ['PATH']}:{Path(sys.executable).parent}")
        yield str(find_compose())


@pytest.fixture(scope="session")
def base_image(engine: str) -> str:
    """Return the tag of an image with python3, bash, dash and busybox."""
    return images.base_image()


@pytest.fixture(scope="session")
def torch_image(engine: str) -> str:
    """Return the tag of the base image with torch (CPU), numpy, scikit-learn, pip and torchrun."""
    return images.torch_image()


@pytest.fixture(scope="session")
def examples_image(engine: str) -> str:
    """Return the tag of the torch image with large libraries: Hugging Face's, Lightning and those of the bench."""
    return images.examples_image()


@pytest.fixture(scope="session")
def own_label(engine: str) -> Iterator[str]:
    """Return KEY=VALUE, this test run's own label; containers and volumes that carry it are removed at the end."""
    label = f"{TEST_LABEL}={uuid.uuid4().hex[:12]}"
    yield label
    _remove_labelled(label)


@pytest.fixture(scope="session")
def case_servers(own_label: str) -> Iterator[CaseServers]:
    """Return the long-lived containers of this process, by the flags, image and command that each is started with."""
    servers = CaseServers(lambda *settings: CaseServer(own_label, *settings))
    yield servers
    servers.close()


@pytest.fixture
def docker_run(own_label: str, tmp_path: Path) -> Runs:
    """Run `docker run --rm --init ARGS`; a container that outlives the timeout (120 s unless given) is killed."""
    count = iter(range(10_000))

    def run(*args: str, **kw: Any) -> subprocess.CompletedProcess[str]:
        noted = tmp_path / f"container-{next(count)}.id"
        try:
            return run_process(
                ["docker", "run", "--rm", "--init", f"--cidfile={noted}", f"--label={own_label}", *args], **kw
            )
        except subprocess.TimeoutExpired:
            _docker("rm", "--force", "--volumes", noted.read_text())
            raise

    return run


def _need_engine() -> str:
    version, problem = _engine()
    if version is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no Docker engine answers, and CI may not skip its tests: {problem}", pytrace=False)
        pytest.skip(f"no Docker engine answers: {problem}")
    return version


@cache
def _engine() -> tuple[str | None, str]:
    """Return the engine's version, or None and why there is none."""
    try:
        asked = subprocess.run(
            ["docker", "version", "--format", "{{.Server.Version}}"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return None, str(problem)
    if asked.returncode:
        return None, asked.stderr.strip()
    return asked.stdout.strip(), ""


def _remove_labelled(label: str) -> None:
    containers = _docker("ps", "--all", "--quiet", f"--filter=label={label}").split()
    if containers:
        _docker("rm", "--force", "--volumes", *containers)
    volumes = _docker("volume", "ls", "--quiet", f"--filter=label={label}").split()
    if volumes:
        _docker("volume", "rm", "--force", *volumes)


def _docker(*args: str) -> str:
    return subprocess.run(["docker", *args], capture_output=True, text=True, timeout=120, check=False).stdout
