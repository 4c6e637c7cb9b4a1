"""The engine is restarted under a followed run: said, nothing of the output is lost, and the exit code is the job's.

On a dockerd of the test's own, so that nobody else's containers are touched.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trainlaunch.job.reserved import LABEL_PREFIX

from tests.conftest import Runs
from tests.run.gate import Gate
from tests.run.test_up import Start, ended, read_until

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(os.getuid() != 0 or shutil.which("dockerd") is None, reason="only root can start a dockerd"),
]
# It goes on while the engine is away, and ends once that is back.
COUNTS = "echo ready; i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo $i; sleep 0.1; done; {waits}; seq 21 30; exit 9"
ALL = "ready\n" + "".join(f"{number}\n" for number in range(1, 31))


class OwnEngine:
    """A dockerd with its own socket, data and containerd; no network, no rule of a firewall."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = f"unix://{folder}/docker.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        """Start it and wait until it answers."""
        # In a network of its own: without a bridge dockerd deletes docker0, which is the other engine's.
        argv = [
            "unshare",
            "--net",
            "dockerd",
            f"--host={self.host}",
            "--bridge=none",
            "--iptables=false",
            "--log-level=error",
        ]
        argv += options
        argv += [f"--{name}={self.folder}/{name}" for name in ("data-root", "exec-root", "pidfile")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for _ in range(600):
            if self.docker("version").returncode == 0:
                return
            assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.1)
        pytest.fail(f"dockerd did not answer within 60 s: {(self.folder / 'log').read_text()[-2000:]}")

    def end(self, number: signal.Signals) -> None:
        """End it by a signal and wait for that."""
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(timeout=60)
        self._forget_containerd()

    def _forget_containerd(self) -> None:
        """End the containerd of a dockerd that was killed: the next one can't take it over; containers go on."""
        noted = self.folder / "exec-root/containerd/containerd.pid"
        with contextlib.suppress(OSError, ValueError):
            pid = int(noted.read_text())
            if Path(f"/proc/{pid}/comm").read_text() == "containerd\n":
                os.kill(pid, signal.SIGTERM)
                while Path(f"/proc/{pid}").exists():
                    time.sleep(0.1)
        noted.unlink(missing_ok=True)

    def docker(self, *args: str) -> subprocess.CompletedProcess[bytes]:
        """Run the docker command on it."""
        return subprocess.run(["docker", "--host", self.host, *args], capture_output=True, timeout=120, check=False)

    def remove(self) -> None:
        """Remove every container, end it, and undo the mount of its data on itself."""
        self.docker("rm", "--force", *self.docker("ps", "--all", "--quiet").stdout.decode().split())
        self.end(signal.SIGTERM)
        subprocess.run(["umount", "--lazy", self.folder / "data-root"], capture_output=True, check=False)


@pytest.fixture(scope="module")
def loaded(base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnEngine]:
    """Return such an engine, ended, that has the base image."""
    own = OwnEngine(tmp_path_factory.mktemp("engine"))
    own.start()
    saved = subprocess.Popen(["docker", "save", base_image], stdout=subprocess.PIPE)
    subprocess.run(["docker", "--host", own.host, "load", "--quiet"], stdin=saved.stdout, check=True)
    assert saved.stdout is not None
    saved.stdout.close()
    assert saved.wait() == 0
    own.end(signal.SIGTERM)
    yield own
    own.start()
    own.remove()


@pytest.fixture
def live_engine(loaded: OwnEngine) -> Iterator[OwnEngine]:
    """Return it running, with --live-restore; ended afterwards."""
    loaded.start("--live-restore")
    yield loaded
    loaded.end(signal.SIGTERM)


@pytest.fixture
def plain_engine(loaded: OwnEngine) -> Iterator[OwnEngine]:
    """Return it running, as it is by default; ended afterwards."""
    loaded.start()
    yield loaded
    loaded.end(signal.SIGTERM)


@pytest.mark.parametrize("how", [pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGKILL])
def test_a_run_that_outlives_its_engine_is_followed_to_its_end(
    start: Start,
    make_job: Callable[..., Path],
    job_name: str,
    live_engine: OwnEngine,
    gate: Gate,
    how: signal.Signals,
) -> None:
    """With live-restore: each line once, the job's own code, and what happened is said.

    An engine that is killed may lose a line that it has read and not yet kept; what it kept is the measure then.
    """
    command = ["/bin/sh", "-c", COUNTS.format(waits=gate.waits)]
    job = str(make_job(command=command, mounts=gate.mounts))
    process = start("up", job, DOCKER_HOST=live_engine.host)
    seen = read_until(process, b"\n5\n").decode()
    live_engine.end(how)
    live_engine.start("--live-restore")
    said = read_until(process, b"the engine is back", stderr=True).decode()
    gate.open()
    code, rest, err = ended(process)
    err = said + err
    kept = live_engine.docker("logs", job_name).stdout.decode() if how is signal.SIGKILL else ALL
    assert (code, seen + rest) == (9, kept), err
    assert kept.startswith("ready\n1\n2\n3\n4\n5\n")
    assert kept.endswith("28\n29\n30\n")
    assert "the engine went away; waiting up to 60s for it to come back" in err
    assert "the engine is back, and the job goes on" in err


def test_who_only_looks_outlives_a_restart(
    start: Start, make_job: Callable[..., Path], live_engine: OwnEngine, trainlaunch: Runs, job_name: str, gate: Gate
) -> None:
    """`wait` and `logs -f` as `up`: each line once, and the job's own code; so does the keeper."""
    env = {"DOCKER_HOST": live_engine.host}
    command = ["/bin/sh", "-c", COUNTS.format(waits=gate.waits)]
    restart = {"max_attempts": 2, "on_exit_codes": [4]}
    job = str(make_job(command=command, mounts=gate.mounts, restart=restart))
    assert trainlaunch("up", "-d", job, env=env).returncode == 0
    waiting, followed = start("wait", job_name, **env), start("logs", "-f", job_name, **env)
    seen = read_until(followed, b"\n5\n").decode()
    read_until(
        waiting, b" to end\n", stderr=True
    )  # one that has not reached the engine yet would be told that it is away
    live_engine.end(signal.SIGTERM)
    live_engine.start("--live-restore")
    for each in (waiting, followed):
        read_until(each, b"the engine is back", stderr=True)
    gate.open()
    code, rest, err = ended(followed)
    assert (code, seen + rest) == (9, ALL), err
    code, _, err = ended(waiting)
    assert code == 9, err
    assert "the engine is back, and the job goes on" in trainlaunch("status", job_name, env=env).stdout


def test_a_run_that_the_engine_takes_with_it_has_its_own_code(
    start: Start, make_job: Callable[..., Path], plain_engine: OwnEngine, trainlaunch: Runs
) -> None:
    """Without live-restore a restart stops the job: its handler runs, its last words arrive, no new attempt."""
    script = "trap 'echo saved; exit 5' TERM; echo ready; while :; do sleep 0.1; done"
    job = str(make_job(command=["/bin/sh", "-c", script]))
    process = start("up", job, DOCKER_HOST=plain_engine.host)
    read_until(process, b"ready\n")
    plain_engine.end(signal.SIGTERM)
    plain_engine.start()
    code, rest, err = ended(process)
    assert (code, rest) == (5, "saved\n"), err
    assert trainlaunch("wait", job, env={"DOCKER_HOST": plain_engine.host}).returncode == 5


@pytest.mark.long
def test_a_run_that_dies_of_a_restart_was_stopped_by_the_engine(
    start: Start, make_job: Callable[..., Path], plain_engine: OwnEngine
) -> None:
    """143 is not blamed on a stranger, and is not tried again."""
    script = "echo ready; exec sleep 60"
    job = str(make_job(command=["/bin/sh", "-c", script], restart={"max_attempts": 2}))
    process = start("up", job, DOCKER_HOST=plain_engine.host)
    read_until(process, b"ready\n")
    plain_engine.end(signal.SIGTERM)
    plain_engine.start()
    code, _, err = ended(process)
    assert code == 143, err
    assert "cause[TL611]: someone through the engine stopped the job" in err
    assert "starting attempt" not in err


def test_a_run_past_its_ttl_is_removed_by_the_next_up(
    trainlaunch: Runs, make_job: Callable[..., Path], plain_engine: OwnEngine, job_name: str
) -> None:
    """ttl_after_finished on an engine: the next `up` removes the run and says so; one without a ttl stays.

    The next `up` of any job, so on an engine that no other test uses.
    """
    env = {"DOCKER_HOST": plain_engine.host}
    keeping = str(make_job(command=["true"]))
    assert trainlaunch("up", keeping, env=env).returncode == 0
    assert trainlaunch("up", keeping, "--set", "ttl_after_finished=0s", env=env).returncode == 0
    third = trainlaunch("up", keeping, env=env)
    assert third.returncode == 0
    assert "its ttl_after_finished 0s is over" in third.stderr
    listed = plain_engine.docker("ps", "--all", "--quiet", f"--filter=label={LABEL_PREFIX}job={job_name}")
    assert len(listed.stdout.split()) == 2
