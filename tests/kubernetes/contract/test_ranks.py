"""Several pods of one job, of each kind that has a controller, on the fake cluster."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.kubernetes import statuses
from tests.kubernetes.contract.user import Running, User
from tests.kubernetes.pods import Pod
from tests.kubernetes.server import FakeCluster

KINDS = ("job", "jobset", "trainjob", "pytorchjob")
Up = Callable[..., Running]


@pytest.fixture
def up(user: User) -> Up:
    """Start a job of two nodes, of a kind."""

    def start(kind: str, *args: str, **fields: Any) -> Running:
        kubernetes = {"kind": kind, **fields.pop("kubernetes", {})}
        return user.up(*args, command=["true"], kubernetes=kubernetes, torchrun={"nnodes": 2}, **fields)

    return start


def rank(*steps: str | float | int) -> Callable[[Pod], None]:
    """Return a script: prints texts, sleeps floats, and ends with the integer."""

    def script(pod: Pod) -> None:
        for step in steps:
            if isinstance(step, str):
                pod.say(f"{step}\n")
            elif isinstance(step, float):
                pod.sleep(step)
            else:
                pod.exit(step)

    return script


@pytest.mark.parametrize("kind", KINDS)
def test_each_line_carries_its_rank(up: Up, fake: FakeCluster, user: User, kind: str) -> None:
    """Both pods are followed to their ends; `down` then leaves nothing of any kind."""
    fake.ranks_do(rank("a0", 1.0, "b0", 0), rank("a1", 0.5, "b1", 0))
    started = up(kind)
    assert started.end() == 0, started.words()
    assert sorted(bytes(started.out).decode().splitlines()) == ["[0] a0", "[0] b0", "[1] a1", "[1] b1"]
    assert len(fake.pods()) == 2
    down = user.runs("down")
    assert down.process.returncode == 0, down.words()
    assert fake.objects() == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_rank_to_fail_decides(up: Up, fake: FakeCluster, kind: str) -> None:
    """Rank 1 ends with 41; rank 0 is stopped for it, or fails later: the code and the last lines are rank 1's."""
    fake.ranks_do(rank("waits for its peer", 60.0, 0), rank("last words", 1.0, 41))
    started = up(kind)
    assert started.end() == 41, started.words()
    assert "rank 1" in started.said
    assert "last words" in started.said


def test_a_job_set_begins_again_with_all_its_ranks(up: Up, fake: FakeCluster, user: User) -> None:
    """One rank fails, the other is told to end and saves; the second attempt's end is the job's."""
    attempts: dict[int, int] = {0: 0, 1: 0}
    both_read = threading.Barrier(2, timeout=60)

    def script(pod: Pod) -> None:
        attempts[pod.index] += 1
        pod.say(f"attempt {attempts[pod.index]}\n")
        pod.until_read()
        both_read.wait()
        if attempts[1] == 1 and pod.index == 0:
            pod.stopping.wait(60)
        pod.exit(1 if pod.index == 1 and attempts[1] == 1 else 0)

    fake.kubelet.script = script
    started = up("jobset", restart={"max_attempts": 2})
    assert started.end() == 0, started.words()
    assert attempts == {0: 2, 1: 2}
    lines = sorted(set(bytes(started.out).decode().splitlines()))
    assert lines == ["[0] attempt 1", "[0] attempt 2", "[1] attempt 1", "[1] attempt 2"]
    waited = user.runs("wait")
    assert waited.process.returncode == 0, waited.words()


@pytest.mark.parametrize(("kind", "refused"), [("job", "jobs"), ("trainjob", "trainjobs")])
def test_what_was_made_goes_again_where_the_next_is_refused(up: Up, fake: FakeCluster, kind: str, refused: str) -> None:
    """The Service of a Job, the runtime of a TrainJob: nothing is left of half a job."""
    for answer in (None, statuses.internal("admission webhook failed")):  # the dry run passes
        fake.fail("create", refused, answer=answer)
    started = up(kind)
    assert started.end() == 125, started.words()
    assert "admission webhook failed" in started.said
    assert fake.objects() == []


@pytest.mark.parametrize(("kind", "group"), [("jobset", "jobset.x-k8s.io"), ("pytorchjob", "kubeflow.org")])
def test_a_cluster_without_the_kind_is_named(up: Up, fake: FakeCluster, kind: str, group: str) -> None:
    """A CRD that is not installed is a plain 404 of the server; ours says what is missing."""
    fake.kinds.missing.add(group)
    started = up(kind)
    assert started.end() == 125, started.words()
    assert "error[TL527]" in started.said
    assert "Traceback" not in started.said
    assert fake.objects() == []


@pytest.mark.parametrize("kind", ["job", *(pytest.param(each, marks=pytest.mark.long) for each in KINDS[1:])])
def test_an_interrupt_leaves_all_ranks_alone(up: Up, fake: FakeCluster, user: User, kind: str) -> None:
    """130, and `wait` has the code of the job that went on."""
    fake.ranks_do(rank("ready", 4.0, 0), rank("ready", 4.0, 0))
    started = up(kind).until("[0] ready").until("[1] ready").tell(signal.SIGINT)
    assert started.end() == 130, started.words()
    assert user.runs("wait").process.returncode == 0
