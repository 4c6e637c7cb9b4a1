"""What a cluster can't be made to show: faults of the API between a cluster and `up`."""

from __future__ import annotations

import threading
import time

import pytest

from tests.kubernetes import statuses
from tests.kubernetes.asking import wait_until
from tests.kubernetes.contract.user import GIVES_UP_SOON, User, once
from tests.kubernetes.kinds import JOBS, PODS
from tests.kubernetes.pods import Pod
from tests.kubernetes.scripts import NUMBERS, cannot_mount, counting, prints
from tests.kubernetes.server import Answer, FakeCluster


@pytest.mark.parametrize(
    "fault",
    [
        {"reset": True, "after": 700},
        {"ends": True, "after": 701},
        {"ends": True, "after": 0, "times": 3},
        {"reset": True, "after": 33, "times": 6},
        {"slow": 0.0005},
        {"stall": 2.0, "after": 500},
    ],
    ids=str,
)
def test_no_line_of_a_broken_log_stream_is_lost_or_doubled(
    user: User, fake: FakeCluster, fault: dict[str, float]
) -> None:
    """Cut in a line, ended between two, several times, a byte at a time: the output is the log."""
    seen = fake.fail("get", "pods/log", **fault)
    fake.pods_do(counting(code=3, fault=seen))
    up = user.up(command=["true"])
    assert up.end() == 3, up.words()
    assert up.lines == NUMBERS
    assert seen.seen == seen.times


def test_equal_lines_of_one_moment_are_as_many_as_they_were(user: User, fake: FakeCluster) -> None:
    """Ten equal lines with one timestamp, the stream cut among them."""

    def script(pod: Pod) -> None:
        at = pod.store.clock.nanoseconds()
        pod.say("same\n" * 10, at=at)
        pod.sleep(1.5)
        pod.say("same\n" * 10, at=at)
        pod.exit(0)

    fake.fail("get", "pods/log", reset=True, after=36 * 3)
    fake.pods_do(script)
    up = user.up(command=["true"])
    assert up.end() == 0, up.words()
    assert up.lines == ["same"] * 20


@pytest.mark.parametrize(
    "fault",
    [
        {"gone": True, "after": 1},
        {"gone": True, "after": 0, "times": 3},
        {"reset": True, "after": 1},
        {"ends": True, "after": 0, "times": 5},
        {"answer": statuses.expired(1, 2)},
        {"answer": statuses.internal("etcdserver: leader changed")},
        {"answer": statuses.too_many(1), "times": 2},
    ],
    ids=str,
)
def test_a_broken_watch_is_begun_anew(user: User, fake: FakeCluster, fault: dict[str, object]) -> None:
    """Dropped in the middle of an event, expired, refused: the end of the job is seen all the same."""
    seen = fake.fail("watch", "pods", **fault)
    fake.pods_do(counting(code=4))
    up = user.up(command=["true"])
    assert up.end() == 4, up.words()
    assert up.lines == NUMBERS
    assert seen.seen


def test_a_history_that_was_forgotten_is_read_again(user: User, fake: FakeCluster) -> None:
    """etcd compacts while a watch is open."""

    def script(pod: Pod) -> None:
        pod.say("before\n")
        pod.sleep(1)
        fake.store.compact()
        pod.sleep(1)
        pod.say("after\n")
        pod.exit(6)

    fake.pods_do(script)
    up = user.up(command=["true"])
    assert up.end() == 6, up.words()
    assert up.lines == ["before", "after"]


def test_an_api_server_that_restarts_costs_nothing(user: User, fake: FakeCluster) -> None:
    """Connections are refused for three seconds while the job goes on; it is said, once, and nothing is lost."""
    fake.pods_do(counting(pause=0.02, code=5))
    up = user.up(command=["true"]).until("20\n")
    fake.restart_after(3)
    assert up.end() == 5, up.words()
    assert up.lines == NUMBERS


def test_the_end_during_an_outage_is_told_afterwards(user: User, fake: FakeCluster) -> None:
    """The pod ends while nobody answers."""
    fake.pods_do(prints("ready", "last", pause=2, code=8))
    up = user.up(command=["true"]).until("ready")
    fake.restart_after(4)
    assert up.end() == 8, up.words()
    assert up.lines == ["ready", "last"]


def test_a_pause_that_the_server_asks_for_is_taken(user: User, fake: FakeCluster) -> None:
    """429 with Retry-After at the creation: the Job is made once."""
    fault = fake.fail("create", "jobs", answer=statuses.too_many(1), times=2)
    fake.pods_do(lambda pod: pod.exit(0))
    up = user.up(command=["true"])
    assert up.end() == 0, up.words()
    assert fault.seen == 2
    assert len(fake.pods()) == 1


def test_a_name_that_is_taken_between_check_and_creation_is_refused(user: User, fake: FakeCluster) -> None:
    """Two people start the same job at once: one of them gets TL506."""
    user.writes(command=["true"])
    fake.fail("create", "jobs", answer=None)  # the dry run passes
    fake.fail("create", "jobs", answer=statuses.already_exists(JOBS, "digits-0000"))
    up = user.starts("up", "job.yaml")
    assert up.end() == 125, up.words()
    assert "error[TL506]" in up.said
    assert fake.objects() == []


def test_every_object_is_tried_out_before_one_is_made(user: User, fake: FakeCluster) -> None:
    """dryRun=All and strict fields first; the creation itself is strict too and names its manager."""
    fake.pods_do(lambda pod: pod.exit(0))
    up = user.up(command=["true"])
    assert up.end() == 0, up.words()
    asked = [(each.query.get("dryRun"), each.query.get("fieldValidation")) for each in fake.asked("create", "jobs")]
    assert asked == [("All", "Strict"), (None, "Strict")]
    assert {each.query.get("fieldManager") for each in fake.asked("create", "jobs")} == {"trainlaunch"}


def test_an_expired_token_is_said_plainly(user: User, fake: FakeCluster) -> None:
    """While following: the job goes on, and the commands to go on with are printed."""
    fake.pods_do(prints("ready", pause=3600))
    up = user.up(command=["true"]).until("ready")
    fake.token = "another"
    fake.restart_after(0.2)
    assert up.end() == 125, up.words()
    assert "error[TL524]" in up.said
    assert "trainlaunch logs -f" in up.said
    assert "Traceback" not in up.said


@pytest.mark.parametrize(
    ("verb", "what"), [("create", "jobs"), ("list", "pods"), ("watch", "pods"), ("get", "pods/log")]
)
def test_what_is_forbidden_is_named(user: User, fake: FakeCluster, verb: str, what: str) -> None:
    """RBAC: verb and resource stand there, in the cluster's own words; the job's own code where it still ran."""
    fake.forbid(verb, what)
    fake.pods_do(counting(code=3))
    up = user.up(command=["true"])
    assert up.end() == (3 if what == "pods/log" else 125), up.words()
    assert f'cannot {verb} resource "{what}"' in " ".join(up.said.split())
    assert "Traceback" not in up.said


@pytest.mark.parametrize(("verb", "what"), [("list", "events"), ("create", "pods/exec")])
def test_what_only_explains_may_be_forbidden(user: User, fake: FakeCluster, verb: str, what: str) -> None:
    """The job is followed to its end without it."""
    fake.forbid(verb, what)
    fake.pods_do(counting(code=3))
    up = user.up(command=["true"])
    assert up.end() == 3, up.words()
    assert up.lines == NUMBERS


def test_a_kubelet_that_restarts_costs_no_line(user: User, fake: FakeCluster) -> None:
    """Its log ends, then the API answers 500, then 404 for a second, then 200; the pod has printed on meanwhile."""
    fake.pods_do(counting(pause=0.02, code=5))
    up = user.up(command=["true"]).until("20\n")
    fake.kubelet.restart(away=1.5, blank=1.5)
    assert up.end() == 5, up.words()
    assert up.lines == NUMBERS
    assert "can't be read" not in up.said


def test_a_node_that_does_not_know_a_pod_for_longer_is_said(user: User, fake: FakeCluster) -> None:
    """The watch says that the pod is there, so 404 is no end; it is said once."""
    known = threading.Event()

    def script(pod: Pod) -> None:
        pod.say("before\n")
        known.wait(60)
        pod.say("after\n")
        pod.exit(5)

    fake.pods_do(script)
    up = user.up(command=["true"]).until("before")
    fake.kubelet.restart(away=0.5, blank=3600)
    up.until("its node does not know the pod", err=True)
    fake.kubelet.restart(away=0, blank=0)
    known.set()
    assert up.end() == 5, up.words()
    assert up.lines == ["before", "after"]
    assert once(up.said, "its node does not know the pod")


def test_a_log_that_is_printed_while_the_kubelet_restarts_is_whole(user: User, fake: FakeCluster) -> None:
    """`logs` asks whether the pod is there before it takes a 404 for an end."""
    fake.pods_do(counting(pause=0.0, code=5))
    assert user.up(command=["true"]).end() == 5
    fake.kubelet.restart(away=0.0, blank=3600)
    before = len(fake.asked("get", "pods/log"))
    logs = user.starts("logs", "job.yaml")
    wait_until(lambda: len(fake.asked("get", "pods/log")) > before)
    fake.kubelet.restart(away=0.0, blank=0.0)
    assert logs.end() == 0, logs.words()
    assert logs.lines == NUMBERS


def test_a_pod_that_is_gone_ends_its_log(user: User, fake: FakeCluster) -> None:
    """404 and the watch's DELETED together are the end, at once."""
    fake.pods_do(prints("ready", pause=3600))
    up = user.up(command=["true"]).until("ready")
    fake.fail("get", "pods/log", answer=statuses.not_found(PODS, "digits-x"), times=50)
    begin = time.monotonic()
    assert user.runs("down").process.returncode == 0
    assert up.end() != 0
    assert time.monotonic() - begin < 15
    assert "can't be read" not in up.said


def test_logs_that_a_node_rotated_are_followed_on(user: User, fake: FakeCluster) -> None:
    """An open stream outlives a rotation."""
    read = threading.Event()

    def script(pod: Pod) -> None:
        pod.say("one\n")
        read.wait(60)
        pod.log.rotate()
        pod.say("two\n")
        pod.sleep(0.2)
        pod.exit(0)

    fake.pods_do(script)
    up = user.up(command=["true"]).until("one")
    read.set()
    assert up.end() == 0, up.words()
    assert up.lines == ["one", "two"]


@pytest.mark.parametrize("skew", [-3600.0, 3600.0])
def test_a_cluster_whose_clock_is_off_is_followed_alike(user: User, fake: FakeCluster, skew: float) -> None:
    """No time of ours is compared with one of the cluster's."""
    fake.clock.skew = skew
    fake.fail("get", "pods/log", reset=True, after=500)
    fake.pods_do(counting(code=3))
    up = user.up(command=["true"])
    assert up.end() == 3, up.words()
    assert up.lines == NUMBERS


def test_a_key_that_a_mounted_secret_lacks_ends_with_125(user: User, fake: FakeCluster) -> None:
    """The kubelet says the key and not the Secret; the cause says what to do, at the line of the job file."""
    user.speed = GIVES_UP_SOON
    fake.pods_do(cannot_mount("secret-0", "references non-existent secret key: token"))
    up = user.up(command=["true"], secrets={"HUB": {"kubernetes": "hub/token", "as": "file"}})
    assert up.end() == 125, up.words()
    assert "(secrets.HUB, job.yaml:" in up.said
    assert "a Secret that the job mounts has no key token" in up.said


def test_a_configmap_that_comes_in_time_is_waited_for(user: User, fake: FakeCluster) -> None:
    """Somebody makes it while the wait is on: the job runs."""
    made = threading.Event()

    def script(pod: Pod) -> None:
        pod.schedule()
        pod.event("Warning", "FailedMount", 'MountVolume.SetUp failed for volume "mount-0" : configmap "c" not found')
        made.wait(60)
        pod.say("runs\n")
        pod.exit(3)

    fake.pods_do(script)
    up = user.up(command=["true"], mounts=[{"type": "config", "source": "c", "target": "/c", "read_only": True}])
    up.until("giving up after 20s", err=True)
    made.set()
    assert up.end() == 3, up.words()
    assert up.lines == ["runs"]


def test_an_end_with_0_at_the_deadline_is_not_denied(user: User, fake: FakeCluster) -> None:
    """The job saved and ended well, and its Job failed all the same: both are said."""
    up = user.up(script="trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done", active_deadline="3s")
    assert up.end() == 125, up.words()
    assert "all ended with exit code 0 (Job was active longer than specified deadline)" in up.said
    assert "left an exit code" not in up.said
    waited = user.runs("wait")
    assert waited.process.returncode == 125, waited.words()
    assert "its pods are gone, and their exit codes with them" in waited.said


def test_a_container_that_ends_refuses_commands_and_nobody_says_so(user: User, fake: FakeCluster) -> None:
    """The API server answers 500 to the WebSocket's handshake; the pod's status says a moment later that it ended."""

    def script(pod: Pod) -> None:
        pod.say("ready\n")
        fake.container_gone = True
        while not fake.asked("get", "pods/exec"):
            pod.sleep(0.1)
        pod.sleep(0.5)
        pod.exit(3)

    fake.pods_do(script)
    up = user.up(command=["true"])
    assert up.end() == 3, up.words()
    assert "not watched" not in up.said
    assert "Handshake" not in up.said


def test_why_commands_are_refused_is_told_in_the_servers_words(user: User, fake: FakeCluster) -> None:
    """By `status`, and by `up` where it goes on so; without the library's headers and numbers."""
    fake.container_gone = True
    fake.pods_do(prints("ready", pause=3600))
    user.up(command=["true"]).until("/dev/shm is not watched: ", err=True)
    status = user.runs("status")
    assert "Handshake" not in status.words()
    assert 'not read: unable to upgrade connection: container not found ("train")' in bytes(status.out).decode()


@pytest.mark.parametrize(
    ("used", "says"),
    [
        (200 << 20, "also pays for /dev/shm, which was used up to 200 MiB"),
        (4096, "its memory limit: the memory limit of 256 MiB"),
    ],
)
def test_an_oom_names_the_share_of_dev_shm(user: User, fake: FakeCluster, used: int, says: str) -> None:
    """As a number where it was seen; one that is unused, but for the health check's own page, is not mentioned."""
    seen = threading.Event()

    def look(pod: object, command: list[str]) -> Answer:
        seen.set()
        return Answer(f"shm used={used} peak={used} size=1073741824 workers=0/0\n".encode())

    def script(pod: Pod) -> None:
        pod.say("ready\n")
        seen.wait(60)
        pod.sleep(1.0)
        pod.exit(137, "OOMKilled")

    fake.exec = look
    fake.pods_do(script)
    up = user.up(command=["true"])
    assert up.end() == 137, up.words()
    assert says in up.said
    assert ("/dev/shm" in up.said.partition("cause[TL610]")[2].partition("= saw")[0]) is (used > 4096)
