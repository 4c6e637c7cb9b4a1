"""What nodes, controllers, queues and other people do to a job, as users of `up` meet it."""

from __future__ import annotations

import base64
import json
import signal
import struct
import threading
import time
from typing import Any

import pytest
from trainlaunch.inside.data_wait import RECORD, RECORDS
from trainlaunch.kinds import workloads
from trainlaunch.run.base import live_snapshot

from tests.kubernetes.contract.user import GIVES_UP_SOON, User, once
from tests.kubernetes.pods import INDEX, Pod
from tests.kubernetes.scripts import prints
from tests.kubernetes.server import FakeCluster, Script
from tests.kubernetes.websocket import Answer
from tests.run.live.looks import IN_SAMPLE, WAITS, Proc, text, worker


def test_an_eviction_is_named_and_replaced(user: User, fake: FakeCluster) -> None:
    """A disruption is no failure of the job: the next pod is followed, and its code counts."""
    evicted = "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi."
    fake.pods_do(lambda pod: pod.evict(evicted), prints("again"))
    up = user.up(command=["true"])
    assert up.end() == 0, up.words()
    assert "again" in up.lines
    assert "evicted" in up.said.lower()


def test_a_lone_pod_that_is_evicted_ends_with_its_cause(user: User, fake: FakeCluster) -> None:
    """kind pod has no controller: the eviction is the end, explained."""
    evicted = 'Usage of EmptyDir volume "tmp" exceeds the limit "1Gi".'
    fake.pods_do(lambda pod: pod.evict(evicted))
    up = user.up(command=["true"], kubernetes={"kind": "pod"})
    assert up.end() != 0, up.words()
    assert "evicted" in up.said.lower()
    assert evicted in up.said


def test_this_machine_is_wrong_means_another_attempt(user: User, fake: FakeCluster) -> None:
    """75 from the preflight counts as an attempt; the second one's end is the job's."""
    said = (
        "trainlaunch: preflight stopped (75): /dev/shm has 1 of 64 MiB free, the job needs 2 MiB; end what else uses it"
    )

    def elsewhere(pod: Pod) -> None:
        pod.say(said + "\n")
        pod.exit(75, message=said)

    fake.pods_do(elsewhere, prints("trained"))
    up = user.up(command=["true"], restart={"max_attempts": 2})
    assert up.end() == 0, up.words()
    assert up.lines == ["trained"]


def test_a_lost_node_is_named(user: User, fake: FakeCluster) -> None:
    """The taint manager deletes the pod of a node that no longer answers."""
    read = threading.Event()

    def script(pod: Pod) -> None:
        pod.say("ready\n")
        read.wait(60)
        fake.lost_nodes.add("node-1")
        said = "Taint manager: deleting due to NoExecute taint"
        pod.condition("DisruptionTarget", "True", "DeletionByTaintManager", said)
        lost = {"reason": "NodeLost", "message": f"Node node-1 which was running pod {pod.name} is unresponsive"}
        pod.exit(137, status=lost)

    fake.pods_do(script)
    up = user.up(command=["true"], kubernetes={"kind": "pod"}).until("ready")
    read.set()
    assert up.end() != 0, up.words()
    assert "taint" in up.said
    assert "ready" in up.lines


def test_kueue_is_named_while_it_holds_a_job(user: User, fake: FakeCluster) -> None:
    """Suspended, not admitted, and why; then it runs."""
    fake.api.queue_message = "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu"
    fake.pods_do(prints("trained"))
    up = user.up(command=["true"], kubernetes={"queue": "gpus"})
    up.until("insufficient quota for nvidia.com/gpu", err=True)
    fake.admit()
    assert up.end() == 0, up.words()
    assert once(up.said, "insufficient quota for nvidia.com/gpu")
    assert up.lines == ["trained"]


@pytest.mark.parametrize("kind", ["job", "jobset", "trainjob", "pytorchjob"])
def test_a_queue_that_nothing_holds_is_refused(user: User, fake: FakeCluster, kind: str) -> None:
    """Without Kueue's webhook the job would start at once: the dry run shows it, at the job file's line."""
    up = user.up(command=["true"], kubernetes={"queue": "gpus", "kind": kind})
    assert up.end() == 125, up.words()
    assert once(up.said, "error[TL530]: nothing in namespace")
    assert "back for the queue gpus" in up.said
    assert fake.objects() == []


def test_a_registry_that_recovers_is_waited_for(user: User, fake: FakeCluster) -> None:
    """ErrImagePull and ImagePullBackOff alternate; said once, and the job runs in the end."""
    why = 'Failed to pull image "trainer:1": dial tcp: lookup registry.example: i/o timeout'
    said = threading.Event()

    def script(pod: Pod) -> None:
        pod.wait("ErrImagePull", why)
        said.wait(60)
        for _ in range(3):
            pod.wait("ErrImagePull", why)
            pod.sleep(0.8)
            pod.wait("ImagePullBackOff", f'Back-off pulling image "trainer:1": ErrImagePull: {why}')
            pod.sleep(0.8)
        pod.say("trained\n")
        pod.exit(0)

    fake.pods_do(script)
    up = user.up(command=["true"]).until(why, err=True)
    said.set()
    assert up.end() == 0, up.words()
    assert once(up.said, why)
    assert up.lines == ["trained"]


def test_a_job_that_somebody_removes_is_noticed(user: User, fake: FakeCluster) -> None:
    """`down` from elsewhere ends `up` too."""
    up = user.up(script="echo ready; sleep 3600").until("ready")
    assert user.runs("down").process.returncode == 0
    assert up.end() != 0, up.words()
    assert fake.objects() == []


def test_a_deletion_that_takes_long_is_waited_for(user: User, fake: FakeCluster) -> None:
    """`down` returns when the pods are gone, not before."""

    def deaf(pod: Pod) -> None:
        pod.say("ready\n")
        pod.stopping.wait(60)
        time.sleep(pod.store.clock.real(3))
        pod.exit(137)

    fake.pods_do(deaf)
    user.up(command=["true"]).until("ready")
    down = user.runs("down")
    assert down.process.returncode == 0, down.words()
    assert fake.objects() == []


def test_status_shows_what_the_health_check_reads(user: User, fake: FakeCluster) -> None:
    """By exec in the running pod; where that is forbidden the reason stands there instead."""
    fake.exec = lambda pod, command: Answer(b"shm used=5242880 peak=6291456 size=67108864 workers=0/0\n")
    up = user.up(script="echo ready; sleep 3600").until("ready")
    status = user.runs("status")
    assert status.process.returncode == 0, status.words()
    shown = bytes(status.out).decode()
    assert "used 5.0 MiB, peak 6.0 MiB, size 64 MiB" in shown
    assert "node-1" in shown
    fake.forbid("create", "pods/exec")
    refused = user.runs("status")
    assert refused.process.returncode == 0, refused.words()
    assert "pods/exec" in refused.words()
    assert up.tell(signal.SIGINT).end() == 130


def test_waits_for_data_are_read_in_the_pod(user: User, fake: FakeCluster) -> None:
    """Where the rendering notes them: by status, and by a following up, which says that it misses the end.

    The node's clock is ten minutes ahead, and process 7 has waited for another second.
    """
    now = int(time.time() + 600) * 10**9
    record = struct.pack("=10q", 7, 0, 1, 5, 3 * 10**9, 10**9, now, now, now - 10**9, 0) + b"train.py:3"
    page = record.ljust(RECORD * RECORDS, b"\0")
    over = threading.Event()

    def answer(pod: dict[str, Any], command: list[str]) -> Answer:
        if "base64" in command[-1]:
            return Answer(base64.encodebytes(page) + b"\n1 7\n%d\n" % (now // 10**9))
        return Answer(b"shm used=5242880 peak=6291456 size=67108864 workers=0/0\n")

    def trains(pod: Pod) -> None:
        pod.say("ready\n")
        over.wait(120)
        pod.exit(0)

    fake.exec = answer
    fake.pods_do(trains)
    up = user.up(command=["true"], observe=True).until("ready")
    status = user.runs("status", "-o", "json")
    (pod,) = json.loads(bytes(status.out))["containers"]
    assert (pod["data_wait"]["waited"], pod["data_wait"]["loaders"][0]["at"]) == (4.0, "train.py:3")
    asked = len(fake.asked("get", "pods/exec"))
    while len(fake.asked("get", "pods/exec")) < asked + 4:  # two looks of up, each with two commands
        time.sleep(0.05)
    over.set()
    assert up.end() == 0
    assert ", waited for data at least 4.0 s, " in up.words()


def test_status_sizes_an_unsized_job_by_its_highest_pod(user: User, fake: FakeCluster) -> None:
    """Two nodes, one line to paste: 20 MiB of two workers that hold four batches."""

    def answer(pod: dict[str, Any], command: list[str]) -> Answer:
        peak = 20 << 20 if pod["metadata"]["annotations"][INDEX] == "1" else 4 << 20
        return Answer(f"shm used=1048576 peak={peak} size=67108864 workers=2/2\n".encode())

    fake.exec = answer

    def waits(pod: Pod) -> None:
        pod.say("ready\n")
        pod.stopping.wait(120)
        pod.exit(143)

    fake.pods_do(waits)
    unsized = {"num_workers": 2, "batch_size": 4}
    torchrun = {"nnodes": 2, "nproc_per_node": 1}
    assert user.up("-d", script="sleep 3600", torchrun=torchrun, data_loader=unsized, shm_size=None).end() == 0
    shown, until = "", time.monotonic() + 40
    while "size: 5Mi" not in shown and time.monotonic() < until:  # the second pod starts after the first
        shown = bytes(user.runs("status").out).decode()
    assert shown.count("data_loader:") == 1
    assert "  batch_bytes: {size: 5Mi, tensors: 1}" in shown
    assert user.runs("down").process.returncode == 0


def test_doctor_looks_into_a_running_pod(user: User, fake: FakeCluster) -> None:
    """By its constant script, run in the pod; where that is forbidden it says so, and goes on with the log."""
    look = text(Proc(7, stack=WAITS), worker(8, stack=IN_SAMPLE, kernel="hrtimer_nanosleep", ran=70_000.0))
    asked = []

    def answer(pod: object, command: list[str]) -> Answer:
        asked.append(command)
        return Answer(look.encode())

    fake.exec = answer
    up = user.up(script="echo ready; sleep 3600").until("ready")
    stuck = user.runs("doctor")
    assert stuck.process.returncode == 1, stuck.words()
    assert "worker 0 has been in `__getitem__` at /w/data.py:41 for 70 s" in bytes(stuck.out).decode()
    assert [each for each in asked if "trainlaunch doctor" in each[2]] == [list(live_snapshot.command())]
    fake.forbid("create", "pods/exec")
    refused = user.runs("doctor")
    assert refused.process.returncode == 0, refused.words()
    assert "pods/exec" in refused.words()
    assert up.tell(signal.SIGINT).end() == 130


def test_ps_lists_runs_of_the_namespace(user: User, fake: FakeCluster) -> None:
    """Only where a cluster was asked for."""
    assert user.up(command=["true"]).end() == 0
    listed = user.starts("ps", "--target", "kubernetes")
    assert listed.end() == 0, listed.words()
    assert "digits" in bytes(listed.out).decode()
    before = len(fake.requests)
    assert user.starts("ps", "--target", "local").end() == 0
    assert len(fake.requests) == before


POD = {"kind": "pod"}
STALL = "rank 0 has waited 612 s for one batch, 600 s are allowed (stall_after)"

SAYS = f"Liveness probe failed: unhealthy: {STALL}\n"


def stalled(code: int, *, killed: str = "train") -> Script:
    """Return a script whose kubelet finds it unhealthy, and ends a container of it, if one is named."""

    def script(pod: Pod) -> None:
        pod.say("ready\n")
        pod.event("Warning", "Unhealthy", SAYS)
        if killed:
            pod.event("Normal", "Killing", f"Stopping container {killed}", container=killed)
        pod.exit(code)

    return script


WATCHED: dict[str, Any] = {"command": ["true"], "healthcheck": {"stall_after": "10m", "on_unhealthy": "stop"}}


def test_a_kubelet_ends_a_stalled_job_and_the_cause_is_named(user: User, fake: FakeCluster) -> None:
    """Its pod says exit code 137 and nothing else: events have the sentence, for `up` and for who looks later."""
    fake.pods_do(stalled(137))
    up = user.up(**WATCHED)
    assert up.end() == 137, up.words()
    assert "cause[TL671]" in up.said
    assert STALL in up.said
    wait = user.runs("wait")
    assert "cause[TL671]" in wait.words()


def test_a_stalled_attempt_is_followed_by_the_next(user: User, fake: FakeCluster) -> None:
    """It counts as any failure."""
    fake.pods_do(stalled(143), prints("trained"))
    up = user.up(**WATCHED, restart={"max_attempts": 2})
    assert (up.end(), sorted(up.lines)) == (0, ["ready", "trained"]), up.words()  # each from a stream of its own


@pytest.mark.parametrize(
    ("script", "fields"),
    [
        (lambda pod: (pod.event("Warning", "Unhealthy", SAYS), pod.drain(137))[1], {**WATCHED, "kubernetes": POD}),
        (stalled(1, killed=""), WATCHED),
        (stalled(1, killed="istio-proxy"), WATCHED),
        (stalled(137), {"command": ["true"]}),
    ],
    ids=["a-drain", "own-code", "a-sidecar", "no-probe"],
)
def test_another_end_of_a_pod_that_was_unhealthy_is_not_the_kubelets(
    user: User, fake: FakeCluster, script: Script, fields: dict[str, Any]
) -> None:
    """What was said against it before is not what ended it."""
    fake.pods_do(script)
    up = user.up(**fields)
    assert up.end() != 0
    assert "TL671" not in up.said


@pytest.mark.parametrize("kind", ["jobset", "trainjob"])
def test_a_kind_that_no_controller_takes_is_told_soon(user: User, fake: FakeCluster, kind: str) -> None:
    """Its API is there and nothing writes a status: that is said, with what brings it, before the wait is given up."""
    fake.operators.away = True
    user.speed = GIVES_UP_SOON
    up = user.up(command=["true"], kubernetes={"kind": kind})
    assert up.end() == 125, up.words()
    assert "nothing has written a status into it yet" in up.said
    assert workloads()[{"jobset": "JobSet", "trainjob": "TrainJob"}[kind]].controller in up.said


@pytest.mark.parametrize("kind", ["job", "jobset", "pytorchjob"])
def test_a_pod_that_may_never_be_made_is_not_waited_for(user: User, fake: FakeCluster, kind: str) -> None:
    """A quota may become free; Pod Security, a limit range or a missing class does not change by itself."""
    refused = 'violates PodSecurity "restricted:latest": runAsNonRoot != true'
    fake.jobs.refuse_pods = fake.operators.refuse_pods = refused  # the dry run of a Job makes no pod
    user.speed = GIVES_UP_SOON
    up = user.up(command=["true"], kubernetes={"kind": kind})
    assert up.end() == 125, up.words()
    assert "giving up after 20s" in up.said
    assert refused in up.said


def test_status_tells_what_the_health_check_has_against_a_pod(user: User, fake: FakeCluster) -> None:
    """Its command has an answer, and it isn't the sizes."""
    fake.exec = lambda pod, command: Answer(b"unhealthy: /dev/shm is gone\n", code=1)
    up = user.up(script="echo ready; sleep 3600").until("ready")
    shown = bytes(user.runs("status").out).decode()
    assert "not read: unhealthy: /dev/shm is gone" in shown
    assert up.tell(signal.SIGINT).end() == 130
