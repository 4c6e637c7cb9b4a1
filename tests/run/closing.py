"""A terminal closes, or `timeout` ends what it started, while jobs are followed: none loses its checkpoint.

A test module subclasses ClosingContract for a target and gives the fixture `backend`. The terminals are tmux's, of a
server of the test's own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.run.base.backend import Backend, ContainerInfo

from tests.run.test_up import CHECKPOINTS, read_until
from tests.runners import ROOT

MakeJob = Callable[..., Path]
# Once shows that it is so; twenty times, that no race takes a checkpoint.
TIMES = pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.long)])
TOGETHER = 5  # since each is a Python and a container, and an engine has some thirty networks for all
UP = [sys.executable, "-m", "trainlaunch", "up"]


class Terminals:
    """A tmux server of its own, with a terminal a session."""

    def __init__(self, name: str) -> None:
        self._tmux = ["tmux", "-L", name, "-f", "/dev/null"]

    def open(self, session: str, *command: str) -> int:
        """Run a command on a new terminal, below a shell as people have one; return the shell's pid."""
        shell = ["bash", "-c", '"$@"; exit', "bash", *command]
        asked = [*self._tmux, "new-session", "-d", "-P", "-F", "#{pane_pid}", "-s", session, *shell]
        env = {**os.environ, "PYTHONPATH": str(ROOT / "launcher")}
        return int(subprocess.run(asked, env=env, capture_output=True, text=True, check=True).stdout)

    def close(self, session: str) -> None:
        """Close a terminal."""
        subprocess.run([*self._tmux, "kill-session", "-t", f"={session}"], check=True)

    def end(self) -> None:
        """End the server."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def terminals() -> Iterator[Terminals]:
    """Return terminals that are all closed at the end."""
    if shutil.which("tmux") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("tmux is not installed, and CI may not skip its tests", pytrace=False)
        pytest.skip("tmux is not installed")
    found = Terminals(f"t-{uuid.uuid4().hex[:10]}")
    yield found
    found.end()


class ClosingContract:
    """What must hold on each target that follows a job from this machine."""

    @pytest.fixture
    def job(self, make_job: MakeJob) -> Path:
        """Return a job that takes a moment for its checkpoint."""
        return make_job(command=["python3", "-c", CHECKPOINTS], stop_grace_period="60s")

    @TIMES
    def test_timeout_takes_no_checkpoint(self, backend: Backend, job: Path, job_name: str, times: int) -> None:
        """It sends SIGTERM to `up`, then to its whole group; the job has its grace period all the same."""

        def one(number: int) -> str:
            timed = subprocess.Popen(
                ["timeout", "300", *UP, str(job), "--name", f"{job_name}-{number}"],
                env={**os.environ, "PYTHONPATH": str(ROOT / "launcher")},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            read_until(timed, b"ready\n")
            timed.send_signal(signal.SIGTERM)  # as its own alarm does: the same handler
            out, err = timed.communicate(timeout=120)
            assert b"must wait longer than stop_grace_period 1m with SIGKILL" in err, (timed.returncode, out, err)
            assert (timed.returncode, out) == (5, b"saved\n"), err
            return out.decode()

        assert _each(one, times, backend, job_name) == ["saved\n"] * times

    @TIMES
    def test_a_closed_terminal_takes_no_checkpoint(
        self, backend: Backend, job: Path, job_name: str, terminals: Terminals, times: int
    ) -> None:
        """The job goes on with `up` as its keeper; stopped later, it saves, and then `up` is gone.

        A signal that the job was sent with its terminal would be one more, since it takes a moment to end.
        """

        def one(number: int) -> tuple[str, int | None, tuple[int, ...]]:
            name = f"{job_name}-{number}"
            shell = terminals.open(name, *UP, str(job), "--name", name)
            run = _until(lambda: _ready(backend, name))
            (up,) = _children(shell)
            terminals.close(name)
            _until(lambda: not _exists(shell))
            _until(lambda: _has_left(up))
            now = backend.inspect(run.id)
            assert now is not None
            assert now.status == "running"
            assert _exists(up)
            backend.stop(run.id)
            code = backend.wait(run.id)
            _until(lambda: not _exists(up))
            ended = backend.inspect(run.id)
            assert ended is not None
            return _printed(backend, run), code, backend.signals(ended)

        assert _each(one, times, backend, job_name) == [("ready\nsaved\n", 5, (signal.SIGTERM,))] * times


def _each(one: Callable[[int], Any], times: int, backend: Backend, job: str) -> list[Any]:
    """Return what each run gave; few are left at a time."""
    given: list[Any] = []
    for first in range(0, times, TOGETHER):
        with ThreadPoolExecutor(TOGETHER) as pool:
            given += pool.map(one, range(first, min(first + TOGETHER, times)))
        for run in backend.runs(job):
            backend.remove(run.id)
    return given


def _ready(backend: Backend, name: str) -> ContainerInfo | None:
    run = next((each for each in backend.runs() if each.name == name and each.status == "running"), None)
    return run if run is not None and "ready\n" in _printed(backend, run) else None


def _printed(backend: Backend, run: ContainerInfo) -> str:
    return b"".join(each.data for each in backend.logs(run.id, follow=False) if not each.stderr).decode()


def _until(condition: Callable[[], object], seconds: float = 90) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.1)
    return pytest.fail(f"not within {seconds} s")


def _has_left(pid: int) -> bool:
    """Whether a process knows that its terminal is gone: what pointed there points to nothing."""
    return all(str(Path(f"/proc/{pid}/fd/{each}").readlink()) == os.devnull for each in range(3))


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]


def _exists(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False
