"""A pod that was told to end and ended with 0 has saved, and has not finished: no verb calls that a success."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.kubernetes.asking import wait_until
from tests.kubernetes.contract.user import User, once
from tests.kubernetes.deletion import delete
from tests.kubernetes.kinds import EVENTS, PODS
from tests.kubernetes.pods import Pod
from tests.kubernetes.scripts import prints
from tests.kubernetes.server import FakeCluster, Script

POD = {"kubernetes": {"kind": "pod"}}
SAVED = "what it saved is there, and it did not finish"


def drained(code: int = 0) -> Script:
    """Return a script of a pod that is evicted through the API once it has printed."""

    def script(pod: Pod) -> None:
        pod.say("ready\n")
        pod.until_read()
        pod.drain(code)

    return script


def until_stopped(code: int) -> Script:
    """Return a script of a pod whose handler takes two seconds when it is deleted."""

    def script(pod: Pod) -> None:
        pod.say("ready\n")
        pod.stopping.wait(60)
        pod.killing()
        pod.store.clock.skew += 2
        pod.exit(code)

    return script


@pytest.mark.parametrize("kind", ["job", "jobset"])
def test_a_drained_pod_that_saves_is_75_and_no_success(user: User, fake: FakeCluster, kind: str) -> None:
    """Its controller calls the workload complete."""
    fake.pods_do(drained())
    up = user.up(command=["true"], kubernetes={"kind": kind})
    assert up.end() == 75, up.words()
    assert once(up.said, SAVED)
    assert "cause[TL623]" in up.said
    assert "cause[TL615]" not in up.said


def test_a_lone_pod_that_is_drained_takes_its_next_attempt(user: User, fake: FakeCluster) -> None:
    """Whatever its handler ends with; the pod itself is gone by then, and nobody removed the job."""
    scripts = [drained(), drained(143), prints("trained")]

    def in_turn(pod: Pod) -> None:
        scripts.pop(0)(pod)  # each attempt is a pod of its own

    fake.kubelet.script = in_turn
    up = user.up(command=["true"], restart={"max_attempts": 3}, **POD)
    assert up.end() == 0, up.words()
    assert up.lines == ["ready", "ready", "trained"]
    assert "somebody removed" not in up.said


@pytest.mark.parametrize("fields", [{}, POD], ids=["job", "pod"])
def test_a_run_that_is_removed_while_it_saves_is_no_success(
    user: User, fake: FakeCluster, fields: dict[str, Any]
) -> None:
    """And no attempt follows one that somebody ended."""
    fake.pods_do(until_stopped(0))
    up = user.up(command=["true"], restart={"max_attempts": 3}, **fields).until("ready")
    assert user.runs("down").process.returncode == 0
    assert up.end() == 75, up.words()
    assert "somebody removed the job" in up.said
    assert fake.objects() == []


EVERY_KIND = ["job", *(pytest.param(each, marks=pytest.mark.long) for each in ("jobset", "trainjob", "pytorchjob"))]


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_what_begins_after_a_drained_pod_is_gone_reads_no_success(user: User, fake: FakeCluster, kind: str) -> None:
    """The workload is complete and says no more; the kubelet's event does, and without events it is unknown."""
    fake.pods_do(drained())
    assert user.up(command=["true"], kubernetes={"kind": kind}).end() == 75
    wait_until(lambda: fake.pods() == [])
    wait, status = user.runs("wait"), user.runs("status", "-o", "json")
    assert wait.process.returncode == 75, wait.words()
    assert once(wait.words(), SAVED)
    run = json.loads(bytes(status.out))
    assert (run["state"], run["exit_code"]) == ("failed", 75)
    for event in fake.store.all(EVENTS, "team"):  # an hour later
        fake.store.remove(EVENTS, "team", event["metadata"]["name"])
    wait, status = user.runs("wait"), user.runs("status", "-o", "json")
    assert wait.process.returncode == 125
    assert "exit code is unknown" in wait.words()
    assert "the job failed" not in wait.words()
    run = json.loads(bytes(status.out))
    assert (run["state"], run["exit_code"], run["causes"]) == ("unknown", None, [])


def test_a_trained_pod_that_somebody_removes_later_is_a_success(user: User, fake: FakeCluster) -> None:
    """So is one of a second attempt, the first of which was drained."""
    fake.pods_do(drained(143), prints("trained"))
    assert user.up(command=["true"], restart={"max_attempts": 2}).end() == 0
    for pod in fake.pods():
        delete(fake.store, PODS, ("team", pod["metadata"]["name"]), {})
    wait_until(lambda: fake.pods() == [])
    wait = user.runs("wait")
    assert wait.process.returncode == 0, wait.words()


def test_a_pod_that_ended_before_it_was_deleted_is_a_success(user: User, fake: FakeCluster) -> None:
    """As `ttl_after_finished` and a person who tidies up delete it."""
    fake.pods_do(prints("trained"))
    assert user.up(command=["true"], **POD).end() == 0
    (pod,) = fake.pods()
    name = pod["metadata"]["name"]
    fake.store.update(PODS, "team", name, lambda new: new["metadata"].update(finalizers=["somebody/holds-it"]))
    delete(fake.store, PODS, ("team", name), {})
    wait = user.runs("wait")
    assert wait.process.returncode == 0, wait.words()


def test_a_stall_that_ends_with_0_is_75(user: User, fake: FakeCluster) -> None:
    """The liveness probe's kill lets a handler save; the Job is complete then."""

    def stalls(pod: Pod) -> None:
        pod.say("ready\n")
        pod.event("Warning", "Unhealthy", "Liveness probe failed: unhealthy: rank 0 has waited 612 s for one batch\n")
        pod.killing()
        pod.exit(0)

    fake.pods_do(stalls)
    up = user.up(command=["true"], healthcheck={"stall_after": "10m", "on_unhealthy": "stop"})
    assert up.end() == 75, up.words()
    assert "cause[TL671]" in up.said
    assert "it did not finish" in up.said


def test_one_of_two_nodes_drained_promises_no_new_pod(user: User, fake: FakeCluster) -> None:
    """The Job has failed: nothing makes another one."""
    fake.ranks_do(prints("trains", pause=3600), drained(143))
    up = user.up(script="sleep 3600", torchrun={"nnodes": 2, "nproc_per_node": 1})
    assert up.end() == 143, up.words()
    assert "cause[TL623]" in up.said
    assert "makes another pod" not in up.said
    assert "kubernetes.kind jobset" in up.said


def test_ctrl_c_leaves_the_jobs_own_code(user: User, fake: FakeCluster) -> None:
    """Who stops it knows that it has not finished."""
    fake.pods_do(until_stopped(0))
    up = user.up("--stop-on-interrupt", command=["true"], stop_grace_period="8s").until("ready").tell(signal.SIGINT)
    assert up.end() == 0, up.words()


def test_attach_says_the_jobs_own_grace_period(user: User, fake: FakeCluster) -> None:
    """It has no job file's: the pod states it."""
    fake.pods_do(until_stopped(143))
    assert user.up("-d", command=["true"], stop_grace_period="8s").end() == 0
    attach = user.starts("attach", "job.yaml", "--stop-on-interrupt").until("ready").tell(signal.SIGINT)
    attach.end()
    assert "8s" in attach.said, attach.words()
    assert "30s" not in attach.said
