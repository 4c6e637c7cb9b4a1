"""Two users on one engine, and labels that are none of ours: each is told whose a run is, and no verb breaks."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Runs
from tests.run.conftest import containers_of, docker, inspected
from tests.users import ELSE, ROOT_ONLY, SOMEBODY, Done, trainlaunch_as

pytestmark = pytest.mark.docker
MakeJob = Callable[..., Path]
SOCKET = Path("/var/run/docker.sock")


def user(uid: int, folder: Path, *words: str) -> Done:
    """Run a verb as a member of the engine's group."""
    state = folder / f"state-{uid}"
    if not state.exists():
        state.mkdir()
        os.chown(state, uid, uid)
    return trainlaunch_as(uid, *words, groups=[SOCKET.stat().st_gid], XDG_STATE_HOME=str(state))


@pytest.fixture
def shared() -> Iterator[Path]:
    """Return a folder that every user can enter, as pytest's own is not."""
    with tempfile.TemporaryDirectory(prefix="trainlaunch-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@ROOT_ONLY
@pytest.mark.skipif(not SOCKET.exists(), reason="the engine listens elsewhere")
def test_two_users_on_one_engine_leave_each_other_alone(shared: Path, make_job: MakeJob, job_name: str) -> None:
    """Neither status, logs, wait, down nor up touches what another uid started, until --owner says so."""
    job = shared / "job.yaml"
    job.write_text(make_job(command=["sleep", "60"]).read_text())
    job.chmod(0o644)
    assert user(SOMEBODY, shared, "up", "-d", str(job)).returncode == 0
    (container,) = containers_of(job_name)
    owner = f"{SOMEBODY}@{os.uname().nodename}"
    assert inspected(container)["Config"]["Labels"]["dev.trainlaunch.owner"] == owner
    for words, code in ((("status",), 3), (("logs",), 3), (("wait",), 125), (("down",), 2), (("down", "--all"), 3)):
        done = user(ELSE, shared, words[0], job_name, *words[1:])
        assert (done.returncode, owner in done.stderr) == (code, True), done
    again = user(ELSE, shared, "up", "-d", str(job))
    assert (again.returncode, "TL506" in again.stderr) == (125, True), again.stderr
    assert inspected(container)["State"]["Status"] == "running"
    assert owner[:5] in user(ELSE, shared, "ps").stdout
    assert user(ELSE, shared, "down", job_name, "--owner", owner).returncode == 0
    assert containers_of(job_name) == []


def test_an_ended_run_of_somebody_else_is_neither_renamed_nor_expired(
    trainlaunch: Runs, make_job: MakeJob, job_name: str, base_image: str
) -> None:
    """`up` takes names from its own ended runs, and removes its own when their ttl is over."""
    labels = {"job": job_name, "owner": "bob", "ttl-after-finished": "0", "run": "ab12cd34"}
    given = (f"--label=dev.trainlaunch.{key}={value}" for key, value in labels.items())
    expired = docker("create", *given, base_image, "true")
    docker("start", "--attach", expired)
    job = str(make_job(command=["true"]))
    assert trainlaunch("up", job, env={"TRAINLAUNCH_OWNER": "bob $HOME"}).returncode == 0
    before = containers_of(job_name)
    assert "TL506" in trainlaunch("up", job).stderr
    assert trainlaunch("up", job, "--name", f"{job_name}-2").returncode == 0
    assert {*before} <= {*containers_of(job_name)}
    assert inspected(job_name)["Config"]["Labels"]["dev.trainlaunch.owner"] == "bob $HOME"
    assert trainlaunch("down", job_name, "--owner", "any", "--all").returncode == 0
    assert containers_of(job_name) == []


def test_compose_keeps_an_owner_with_a_dollar(
    trainlaunch: Runs, make_job: MakeJob, job_name: str, compose: str
) -> None:
    """Compose would expand a variable in a label's value."""
    job = str(make_job(target="compose", command=["true"]))
    assert trainlaunch("up", job, env={"TRAINLAUNCH_OWNER": "a$HOME${X}b"}).returncode == 0
    (container,) = containers_of(job_name)
    assert inspected(container)["Config"]["Labels"]["dev.trainlaunch.owner"] == "a$HOME${X}b"


@pytest.mark.parametrize(
    ("key", "value"),
    [("attempt", "1" * 5_000), ("max-attempts", "x"), ("ttl-after-finished", "-1"), ("run", "\x1b[2J"), ("node", "²")],
)
def test_an_alien_label_leaves_out_one_container(
    trainlaunch: Runs, make_job: MakeJob, job_name: str, base_image: str, key: str, value: str
) -> None:
    """5,000 digits in one label stopped every `up` on the engine."""
    alien = docker(
        "create", f"--label=dev.trainlaunch.job={job_name}", f"--label=dev.trainlaunch.{key}={value}", base_image
    )
    job = str(make_job(command=["true"]))
    done = trainlaunch("up", job)
    assert done.returncode == 0, done.stderr
    listed = trainlaunch("ps", "-o", "names")
    assert listed.returncode == 0
    assert job_name in listed.stdout
    assert trainlaunch("status", job_name).returncode == 0
    assert trainlaunch("down", job_name).returncode == 0
    assert [each for each in containers_of(job_name) if alien.startswith(each)] != []
