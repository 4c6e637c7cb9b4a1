"""A closed terminal and `timeout` take no checkpoint of a run on this host; what a logout would take is said."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from trainlaunch.run.keeper import Logout, at_logout, outcome
from trainlaunch.run.local.backend import LocalBackend

from tests.conftest import Runs
from tests.local.conftest import MakeJob
from tests.run.closing import UP, ClosingContract, terminals
from tests.run.keeper_contract import until
from tests.runners import ROOT

__all__ = ["terminals"]
ANSWER = 'b {ipc}\nb {kill}\nas 0\nas 1 "root"\n'


class TestLocal(ClosingContract):
    """Processes of this host."""

    @pytest.fixture
    def backend(self, state: Path) -> LocalBackend:
        """Return a backend on this test's state folder."""
        return LocalBackend(state)


@pytest.mark.parametrize(
    ("ipc", "kill", "user", "system", "lingers", "found"),
    [
        ("true", "false", "ada", False, False, Logout(removes_shm=True)),
        ("true", "false", "ada", False, True, Logout()),
        ("true", "false", "ada", True, False, Logout()),
        ("false", "true", "ada", False, True, Logout(kills=True)),
        ("false", "true", "root", False, False, Logout()),
        ("false", "false", "ada", False, False, Logout()),
    ],
)
def test_what_logind_takes_at_logout(
    ipc: str, kill: str, user: str, system: bool, lingers: bool, found: Logout
) -> None:
    """Lingering keeps files and not the processes of a session; system users and excluded ones lose nothing."""
    answer = ANSWER.format(ipc=ipc, kill=kill)
    assert outcome(answer, user, system_user=system, lingers=lingers) == found
    only_others = answer.replace("as 0", 'as 1 "eve"')
    assert not outcome(only_others, user, system_user=system, lingers=lingers).kills


def test_a_terminal_that_hangs_up_without_a_signal_is_left(
    make_job: MakeJob, trainlaunch: Runs, tmp_path: Path
) -> None:
    """`up` of another session than the terminal's is told by EIO alone; all that pointed there points to nothing."""
    script = f"echo ready; while [ ! -e {tmp_path}/go ]; do echo more; sleep 0.1; done; echo last; exit 3"
    job = str(make_job(command=["/bin/sh", "-c", script]))
    master, terminal = os.openpty()
    up = subprocess.Popen(
        [*UP, job],
        env={**os.environ, "PYTHONPATH": str(ROOT / "launcher")},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(master, 4096)
    os.close(master)
    descriptors = [Path("/proc", str(up.pid), "fd", each) for each in "012"]
    until(lambda: all(str(each.readlink()) == os.devnull for each in descriptors))
    (tmp_path / "go").touch()
    assert up.wait(timeout=60) == 3
    assert trainlaunch("logs", job).stdout.endswith("more\nlast\n")


def test_a_detached_run_says_what_a_logout_takes(
    trainlaunch: Runs, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`up -d` on this host, before anybody logs out."""
    monkeypatch.setattr("trainlaunch.run.machine_up.at_logout", lambda: Logout(removes_shm=True, kills=True))
    done = trainlaunch("up", "-d", str(make_job(command=["true"])))
    assert done.returncode == 0
    assert "`loginctl enable-linger` keeps them" in done.stderr
    assert "`systemd-run --user --scope trainlaunch up …`" in done.stderr


def test_without_logind_nothing_is_said(tmp_path: Path) -> None:
    """Neither where it doesn't know the user nor where it gives no answer."""
    assert at_logout(tmp_path) == Logout()
    assert outcome("", "ada", system_user=False, lingers=False) == Logout()


def test_each_loss_has_its_command() -> None:
    """Files in /dev/shm matter where the run uses the host's."""
    both = Logout(removes_shm=True, kills=True)
    assert [("enable-linger" in each, "systemd-run --user --scope" in each) for each in both.words(uses_hosts_shm=True)]
    assert len(both.words(uses_hosts_shm=True)) == 2
    (only,) = both.words(uses_hosts_shm=False)
    assert "systemd-run --user --scope" in only
