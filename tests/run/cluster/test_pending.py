"""Why something waits, and for how long that is worth while."""

from __future__ import annotations

from typing import Any

import pytest
from trainlaunch.run.base.clock import SYSTEM_CLOCK
from trainlaunch.run.kubernetes.api_errors import ApiRefused
from trainlaunch.run.kubernetes.client import Query
from trainlaunch.run.kubernetes.field_lookup import MissingSource, missing_source
from trainlaunch.run.kubernetes.kubeconfig import Access
from trainlaunch.run.kubernetes.objects import Reference
from trainlaunch.run.kubernetes.pending import Reasons, grace_of, wait_of
from trainlaunch.run.kubernetes.pods import Pod, pod_from

ACCESS = Access("gpu", "https://gpu", "team", "config")
MAIN = Reference("/apis/batch/v1/namespaces/team/jobs", "Job", "job-1")
JOB = {"kind": "Job", "metadata": {"name": "job-1", "uid": "j", "labels": {}}, "spec": {}}
NOT_THERE = 'failed to pull and unpack image "a:1": docker.io/library/a:1: not found'
SETUP = "MountVolume.SetUp failed for volume"
BACK_OFF = f'Back-off pulling image "a:1": ErrImagePull: {NOT_THERE}'


def waiting(reason: str, message: str = "") -> Pod:
    """Return a pod whose container waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    status = {"phase": "Pending", "containerStatuses": [{"name": "train", "state": state}]}
    return pod_from(
        {"metadata": {"name": "p", "uid": "p"}, "spec": {"containers": [{"name": "train"}]}, "status": status}
    )


class Api:
    """Answers lists by the end of their path, as a cluster would; `lists` may hold a refusal."""

    namespace = "team"
    access = ACCESS
    clock = SYSTEM_CLOCK

    def __init__(self, **lists: Any) -> None:
        self.lists = lists

    def get(self, path: str, query: Query = (), *, what: str) -> Any:
        """Return a list, or raise what stands in its place."""
        answer = self.lists.get(path.rpartition("/")[2].partition(".")[0], [])
        if isinstance(answer, Exception):
            raise answer
        return {"items": answer}


def reasons(api: Api) -> Reasons:
    """Return reasons that are not patient."""
    return Reasons(api, MAIN, None, patience=0)  # type: ignore[arg-type]


def event(reason: str, message: str, at: int = 0) -> dict[str, str]:
    """Return an event."""
    return {"reason": reason, "message": message, "lastTimestamp": f"2026-11-28T03:00:{at:02d}Z"}


@pytest.mark.parametrize(
    ("reason", "words", "seconds"),
    [
        ("InvalidImageName", "", 0),
        ("ErrImagePull", NOT_THERE, 15),
        ("ImagePullBackOff", BACK_OFF, 15),
        ("ErrImagePull", "pull access denied, repository does not exist", 15),
        ("ErrImagePull", "dial tcp 1.2.3.4:443: i/o timeout", 300),
        ("CreateContainerConfigError", 'secret "a" not found', 20),
        ("ContainerCreating", "", None),
        ("Unschedulable", "0/3 nodes are available", None),
    ],
)
def test_only_what_no_time_heals_is_given_up(reason: str, words: str, seconds: int | None) -> None:
    """A registry may come back and a node may become free; a tag that is not there stays so."""
    assert grace_of(reason, words) == seconds


def test_a_pull_that_fails_and_backs_off_is_one_reason() -> None:
    """The kubelet goes from one to the other and back for ever."""
    first, second = (
        wait_of(waiting("ErrImagePull", NOT_THERE), None),
        wait_of(waiting("ImagePullBackOff", BACK_OFF), None),
    )
    assert first == second
    assert first is not None
    assert first.sentence == f"pod p can't get its image: {NOT_THERE}"


def test_the_scheduler_is_quoted_without_its_second_half() -> None:
    """Preemption repeats the same per node."""
    message = (
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: 0/2 nodes are available: 2 No victims."
    )
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    pod = pod_from({"metadata": {"name": "p", "uid": "p"}, "status": {"phase": "Pending", "conditions": [condition]}})
    wait = wait_of(pod, None)
    assert wait is not None
    assert wait.sentence == "pod p waits for a node: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu"


def test_a_mount_that_fails_is_told_from_the_last_event() -> None:
    """The status only says ContainerCreating."""
    events = [event("Scheduled", "assigned", 1), event("FailedMount", 'configmap "c" not found', 9)]
    (wait,) = reasons(Api(events=events)).waits([waiting("ContainerCreating")], JOB)
    assert wait.sentence == 'pod p waits: configmap "c" not found'


def test_a_job_without_pods_is_explained_by_its_own_events() -> None:
    """Quota and Pod Security refuse a Job's pods, not the Job."""
    (wait,) = reasons(Api(events=[event("FailedCreate", 'pods "job-1-x" is forbidden: exceeded quota')])).waits([], JOB)
    assert wait.sentence == 'Job job-1 can\'t make its pod: pods "job-1-x" is forbidden: exceeded quota'
    (again,) = reasons(Api(events=[event("FailedCreate", 'pods "job-1-y" is forbidden: exceeded quota')])).waits(
        [], JOB
    )
    assert again.reason == wait.reason


def test_a_queue_is_quoted() -> None:
    """Kueue holds a Job by suspending it, and says why in a Workload of its own."""
    held = {
        **JOB,
        "metadata": {**JOB["metadata"], "labels": {"kueue.x-k8s.io/queue-name": "gpus"}},
        "spec": {"suspend": True},
    }
    condition = {"type": "QuotaReserved", "status": "False", "message": "couldn't assign flavors: insufficient quota"}
    (wait,) = reasons(Api(workloads=[{"status": {"conditions": [condition]}}])).waits([], held)
    assert wait.sentence == (
        "Job job-1 waits: queue gpus has not admitted it: couldn't assign flavors: insufficient quota"
    )


def test_events_that_may_not_be_read_are_said_once_and_not_asked_for_again() -> None:
    """A role may lack them; the pods' own status is still told."""
    refused = ApiRefused(ACCESS, "list events", 403, {"message": "events is forbidden"})
    asked = reasons(Api(events=refused))
    assert asked.waits([], JOB) == []
    assert asked.waits([], JOB) == []
    assert asked.refusals == ["events can't be read, so a pod that waits is not always explained: events is forbidden"]


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        ('secret "hub" not found', MissingSource("secret", "hub")),
        ('configmap "loader" not found', MissingSource("configmap", "loader")),
        ("couldn't find key token in Secret team/hub", MissingSource("secret", "hub", "token")),
        (f'{SETUP} "mount-0" : configmap "loader" not found', MissingSource("configmap", "loader", "", "mount-0")),
        (f'{SETUP} "secret-1" : secret "hub" not found', MissingSource("secret", "hub", "", "secret-1")),
        (
            f'{SETUP} "secret-0" : references non-existent secret key: token',
            MissingSource("secret", "", "token", "secret-0"),
        ),
        (f'{SETUP} "v" : references non-existent config key: a.json', MissingSource("configmap", "", "a.json", "v")),
        (f'{SETUP} "mount-0" : object "team"/"loader" not registered', None),
        (f'{SETUP} "mount-0" : failed to sync configmap cache: timed out waiting for the condition', None),
        ("Unable to attach or mount volumes: unmounted volumes=[mount-0]: context deadline exceeded", None),
        ('persistentvolumeclaim "data" not found', None),
    ],
)
def test_what_is_missing_is_read_from_the_kubelets_words(words: str, missing: MissingSource | None) -> None:
    """A variable's words stand in the status, a mount's in an event; what passes by itself is none of them."""
    assert missing_source(words) == missing


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        (f'{SETUP} "mount-0" : configmap "loader" not found', 20),
        (f'{SETUP} "secret-0" : references non-existent secret key: token', 20),
        (f'{SETUP} "mount-0" : mount failed: exit status 32', 600),
    ],
)
def test_a_mount_is_waited_for_as_long_as_it_may_heal(words: str, seconds: int) -> None:
    """What is missing as long as a missing variable, what a node tries again longer, and both say it."""
    (wait,) = reasons(Api(events=[event("FailedMount", words)])).waits([waiting("ContainerCreating")], JOB)
    assert wait.patience == seconds


def test_every_wait_has_an_end() -> None:
    """Room on a node, a queue and a quota may take a day; nothing is waited for without one."""
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    pod = pod_from({"metadata": {"name": "p", "uid": "p"}, "status": {"phase": "Pending", "conditions": [unscheduled]}})
    (no_room,) = reasons(Api()).waits([pod], JOB)
    (quota,) = reasons(Api(events=[event("FailedCreate", "exceeded quota")])).waits([], JOB)
    (creating,) = reasons(Api()).waits([waiting("ContainerCreating")], JOB)
    assert (no_room.patience, quota.patience, creating.patience) == (86400, 86400, 3600)
    assert no_room.given_up.startswith("no process of the job has started within 24h: pod p waits for a node")
