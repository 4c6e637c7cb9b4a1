"""Jobs of the fake cluster run, fail, are retried and go as those of the real controllers do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kubernetes import client as official

from tests.kubernetes.asking import create, ended, job, log_of, refusal, wait_until
from tests.kubernetes.logs import LogOptions
from tests.kubernetes.server import FakeCluster


def test_a_job_runs_its_command_and_ends_as_it_does(fake: FakeCluster, client: Any) -> None:
    """A real process; its exit code and its output are the pod's."""
    body = job()
    body["spec"]["template"]["spec"]["containers"][0]["args"] = ["sh", "-c", "echo one; echo two >&2; exit 3"]
    create(client, body)
    assert [each.reason for each in ended(client).conditions] == ["BackoffLimitExceeded"] * 2
    (pod,) = official.CoreV1Api(client).list_namespaced_pod("team", label_selector="job-name=digits").items
    assert pod.status.phase == "Failed"
    assert pod.status.container_statuses[0].state.terminated.exit_code == 3
    text = official.CoreV1Api(client).read_namespaced_pod_log(pod.metadata.name, "team")
    assert text.splitlines()[1:] == ["one", "two"]


def test_backoff_limit_and_failure_policy_decide_how_often(fake: FakeCluster, client: Any) -> None:
    """backoffLimit 2 means three pods; a code of the policy means one."""
    fake.pods_do(lambda pod: pod.exit(1))
    create(client, job(backoffLimit=2))
    assert ended(client).failed == 3
    assert len(fake.pods()) == 3
    rules = [{"action": "FailJob", "onExitCodes": {"containerName": "train", "operator": "In", "values": [78]}}]
    fake.pods_do(lambda pod: pod.exit(78, message="the files are wrong"))
    body = job(backoffLimit=3, podFailurePolicy={"rules": rules})
    body["metadata"]["name"] = "wrong"
    create(client, body)
    status = ended(client, "wrong")
    assert (status.failed, status.conditions[-1].reason) == (1, "PodFailurePolicy")
    assert status.conditions[-1].message.endswith("failed with exit code 78 matching FailJob rule at index 0")


def test_a_disruption_that_is_ignored_costs_no_attempt(fake: FakeCluster, client: Any) -> None:
    """An evicted pod is replaced with backoffLimit 0 where the policy ignores it."""
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    fake.pods_do(lambda pod: pod.evict("The node was low on resource: memory."), lambda pod: pod.exit(0))
    create(client, job(podFailurePolicy={"rules": rules}))
    status = ended(client)
    assert (status.succeeded, status.failed) == (1, None)


def test_an_indexed_job_has_a_pod_per_index(fake: FakeCluster, client: Any) -> None:
    """Names, host names, labels and annotations as the controller gives them."""
    fake.pods_do(lambda pod: pod.exit(0))
    create(client, job(completionMode="Indexed", completions=2, parallelism=2))
    assert ended(client).succeeded == 2
    key = "batch.kubernetes.io/job-completion-index"
    for index, pod in enumerate(fake.pods()):
        assert pod["metadata"]["name"].startswith(f"digits-{index}-")
        assert pod["spec"]["hostname"] == f"digits-{index}"
        assert pod["metadata"]["labels"][key] == pod["metadata"]["annotations"][key] == str(index)
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "Job"


def test_deadlines_end_a_job_and_ttl_removes_it(fake: FakeCluster, client: Any) -> None:
    """activeDeadlineSeconds stops its pods; ttlSecondsAfterFinished takes all of it away."""
    fake.pods_do(lambda pod: pod.start())
    create(client, job(activeDeadlineSeconds=600, ttlSecondsAfterFinished=600))
    wait_until(lambda: bool(fake.pods()))
    fake.clock.skew += 601
    assert ended(client).conditions[-1].reason == "DeadlineExceeded"
    assert fake.objects() != []
    fake.clock.skew += 601
    wait_until(lambda: fake.objects() == [])


def test_a_foreground_delete_ends_pods_first(fake: FakeCluster, client: Any, tmp_path: Path) -> None:
    """The Job stays, marked, until its pods are gone; their processes get SIGTERM and the grace period."""
    body, seen = job(), tmp_path / "seen"
    script = f"trap 'until test -e {seen}; do sleep 0.05; done; echo bye; exit 0' TERM; echo ready; "
    script += "while :; do sleep 0.05; done"
    body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 600
    body["spec"]["template"]["spec"]["containers"][0]["args"] = ["sh", "-c", script]
    create(client, body)
    wait_until(lambda: bool(fake.pods()) and b"ready" in b"".join(log_of(fake)))
    log = fake.kubelet.log_of(fake.pods()[0])
    jobs = official.BatchV1Api(client)
    jobs.delete_namespaced_job("digits", "team", propagation_policy="Foreground")
    assert jobs.read_namespaced_job("digits", "team").metadata.finalizers == ["foregroundDeletion"]
    assert refusal(client, job())["message"] == 'object is being deleted: jobs.batch "digits" already exists'
    seen.touch()
    wait_until(lambda: fake.objects() == [])
    assert b"".join(log.read(LogOptions())).endswith(b"bye\n")
