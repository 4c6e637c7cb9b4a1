"""`shell` on the fake cluster: a Job of its own that the cluster removes, or a pod that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from trainlaunch.run.kubernetes.shell import MAX_SECONDS, SHELL_LABEL

from tests.kubernetes import interactive
from tests.kubernetes.contract.user import GIVES_UP_SOON, User
from tests.kubernetes.kinds import JOBS
from tests.kubernetes.role import documented_role
from tests.kubernetes.scripts import cannot_mount, prints
from tests.kubernetes.server import FakeCluster
from tests.shells import ShellContract, Shells, gone, shells

LOADER = {"num_workers": 2, "batch_size": 1, "sample": [{"shape": [1], "dtype": "float32"}]}


@pytest.fixture
def left(fake: FakeCluster) -> Callable[[], object]:
    """Return what lists all objects of the namespace."""
    return fake.objects


@pytest.fixture
def shell(user: User, fake: FakeCluster) -> Iterator[Shells]:
    """Return shells of the user's job, who has the documented Role and nothing else."""
    fake.grant(documented_role())
    user.writes(command=["sleep", "600"], env={"GREETING": "hi there"}, data_loader=LOADER)
    with shells(user.folder, KUBECONFIG=user.place.kubeconfig) as found:
        yield found


class TestCluster(ShellContract):
    """Target kubernetes."""


def test_it_counts_as_no_run_and_ends_by_itself(shell: Shells, user: User, fake: FakeCluster) -> None:
    """No label of ours by which a run is found; the cluster has a deadline and removes it when it has ended."""
    terminal = shell.on_terminal().ready()
    (job,) = fake.store.all(JOBS, "team")
    assert job["spec"]["ttlSecondsAfterFinished"] == 0
    assert job["spec"]["activeDeadlineSeconds"] == MAX_SECONDS
    for meta in (job["metadata"], job["spec"]["template"]["metadata"]):
        assert [each for each in meta["labels"] if each.startswith("trainlaunch.dev/")] == [SHELL_LABEL]
    ps = user.starts("ps", "--target", "kubernetes")
    assert ps.end() == 0
    assert bytes(ps.out) == b""
    assert user.runs("down").process.returncode == 3
    terminal.types(b"exit 0\n")
    assert terminal.end() == 0
    assert gone(fake.objects)


def test_a_pod_that_runs_is_entered(shell: Shells, user: User, fake: FakeCluster) -> None:
    """Its container; what is left of the command ends when its terminal does, and the job goes on."""
    fake.pods_do(prints("ready", pause=3600))
    assert user.starts("up", "-d", "job.yaml").end() == 0
    shell.args = ["--target", "kubernetes"]
    assert gone(lambda: not [each for each in fake.pods() if each["status"].get("phase") == "Running"])
    done = shell.on_pipes("sh", "-c", "echo in; exit 4", what="digits")
    assert (done.returncode, done.stdout) == (4, b"in\n"), done.stderr
    assert len(fake.pods()) == 1


@pytest.mark.usefixtures("shell")
def test_a_pod_that_cannot_start_is_said_and_removed(user: User, fake: FakeCluster) -> None:
    """As `up` says it; 125."""
    fake.pods_do(cannot_mount("mount-0", 'configmap "c" not found'))
    user.speed = GIVES_UP_SOON
    done = user.runs("shell", "--", "true")
    assert done.process.returncode == 125, done.said
    assert 'configmap "c" not found' in done.said
    assert gone(fake.objects)


@pytest.mark.usefixtures("shell")
def test_who_may_not_run_commands_is_told_so(user: User, fake: FakeCluster) -> None:
    """TL525, and nothing is left."""
    fake.forbid("create", "pods/exec")
    done = user.runs("shell", "--", "true")
    assert done.process.returncode == 125, done.said
    assert "TL525" in done.said
    assert gone(fake.objects)


def test_a_connection_that_breaks_is_said(user: User, fake: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a kubelet starts again: 125, and why; the command's own end is not known."""
    closes = lambda handler, *_, **__: setattr(handler, "close_connection", True)  # noqa: E731 - without a status
    monkeypatch.setattr(interactive, "serve", closes)
    fake.pods_do(prints("ready", pause=3600))
    assert user.up("-d", command=["true"]).end() == 0
    done = user.starts("shell", "digits", "--target", "kubernetes", "--", "true")
    assert done.end() == 125, done.words()
    assert "broke before the command ended" in done.said
