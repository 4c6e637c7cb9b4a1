"""What a pod's status says, and which pod decides a run."""

from __future__ import annotations

from typing import Any

import pytest
from trainlaunch.formats.quantities import bytes_of
from trainlaunch.run.kubernetes.pods import attempts_of, end_of, first_to_fail, node_index_of, pod_from
from trainlaunch.run.kubernetes.results import exit_code_of, result_of
from trainlaunch.run.kubernetes.runs import planned_pods

INDEX = "batch.kubernetes.io/job-completion-index"


def raw(name: str, *, created: int = 0, labels: dict[str, str] | None = None, **status: Any) -> dict[str, Any]:
    """Return a pod as the API gives it."""
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "creationTimestamp": f"2026-11-28T03:00:{created:02d}Z",
            "labels": labels or {},
        },
        "spec": {
            "nodeName": "n1",
            "containers": [
                {"name": "istio", "image": "sidecar"},
                {
                    "name": "train",
                    "resources": {"limits": {"memory": "2048Mi"}},
                    "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
                    "readinessProbe": {"exec": {"command": ["/bin/sh", "-c", "echo $$((1+1)) >$$$$"]}},
                },
            ],
            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1127Mi"}}],
        },
        "status": status,
    }


def ended(code: int, *, at: int, reason: str = "Error") -> dict[str, Any]:
    """Return the status of a pod that ended."""
    state = {
        "exitCode": code,
        "reason": reason,
        "startedAt": "2026-11-28T03:00:00Z",
        "finishedAt": f"2026-11-28T03:01:{at:02d}Z",
    }
    return {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": [{"name": "train", "state": {"terminated": state}}],
    }


def test_the_container_with_the_planned_shm_is_the_one_that_trains() -> None:
    """Controllers put others beside it, and their states and sizes are not the job's."""
    pod = pod_from(raw("a", **ended(3, at=1)))
    assert (pod.container, pod.memory, pod.shm_size) == ("train", 2 << 30, 1127 << 20)
    assert (pod.exit_code, pod.state, pod.failed) == (3, "ended", True)


def test_the_health_command_is_read_as_the_kubelet_reads_it() -> None:
    """Kubernetes halves each pair of dollars."""
    assert pod_from(raw("a")).health_command == ("/bin/sh", "-c", "echo $((1+1)) >$$")


def test_a_container_that_the_runtime_could_not_start_has_no_exit_code() -> None:
    """Its 128 is the runtime's: nothing of the job has run."""
    pod = pod_from(raw("a", **ended(128, at=1, reason="StartError")))
    assert (pod.exit_code, pod.reason, pod.failed) == (None, "StartError", True)


def test_a_disruption_is_the_reason_before_the_bare_signal() -> None:
    """The condition knows who sent the signal; of an eviction the pod's own reason says more."""
    lost = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager", "message": "taint"}
    assert pod_from(raw("a", **ended(137, at=1), conditions=[lost])).reason == "DeletionByTaintManager"
    evicted = {**ended(137, at=1), "reason": "Evicted", "message": "The node was low on resource: memory."}
    assert end_of(pod_from(raw("a", **evicted, conditions=[lost]))) == (
        "ended with exit code 137 (Evicted: The node was low on resource: memory.)"
    )


@pytest.mark.parametrize(
    ("meta", "rank"),
    [
        ({"labels": {INDEX: "3"}}, 3),
        ({"annotations": {INDEX: "2"}}, 2),
        ({"labels": {INDEX: "0", "jobset.sigs.k8s.io/job-global-index": "1"}}, 1),
        ({"labels": {"training.kubeflow.org/replica-type": "master", "training.kubeflow.org/replica-index": "0"}}, 0),
        ({"labels": {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "1"}}, 2),
        ({}, None),
    ],
)
def test_each_controller_has_its_own_word_for_the_rank(meta: dict[str, Any], rank: int | None) -> None:
    """Index of a Job, of a JobSet's Job, of a replica behind the master."""
    assert node_index_of(meta) == rank


def test_the_first_rank_to_fail_decides() -> None:
    """The others fail because of it, some only by the signal that ends them."""
    pods = [
        pod_from(raw("a", labels={INDEX: "0"}, **ended(143, at=9))),
        pod_from(raw("b", labels={INDEX: "1"}, **ended(7, at=9))),
        pod_from(raw("c", labels={INDEX: "2"}, **ended(1, at=12))),
    ]
    first = first_to_fail(pods)
    assert first is not None
    assert first.name == "b"
    failed = {"kind": "Job", "status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    assert exit_code_of(result_of(failed), pods) == 7


def test_only_the_last_attempt_decides() -> None:
    """An earlier pod of the same rank was followed by another one."""
    pods = [
        pod_from(raw("a", created=1, **ended(1, at=1))),
        pod_from(raw("b", created=5, **ended(9, at=20))),
    ]
    assert attempts_of(pods) == {"a": 1, "b": 2}
    first = first_to_fail(pods)
    assert first is not None
    assert first.exit_code == 9


def test_of_two_pods_of_one_second_the_failed_one_was_replaced() -> None:
    """The API tells seconds, and a pod that is evicted at once is replaced at once."""
    pods = [pod_from(raw("a", **ended(0, at=1))), pod_from(raw("b", **ended(137, at=1)))]
    assert attempts_of(pods) == {"b": 1, "a": 2}


def test_a_restart_of_a_job_set_is_an_attempt_of_all_its_pods() -> None:
    """Its own count stands in a label."""
    again = {"jobset.sigs.k8s.io/restart-attempt": "1"}
    assert attempts_of([pod_from(raw("a", labels={INDEX: "0", **again}))]) == {"a": 2}


def test_a_run_that_completes_is_0_whatever_earlier_pods_did() -> None:
    """An attempt that failed was tried again."""
    done = {"kind": "Job", "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert exit_code_of(result_of(done), [pod_from(raw("a", **ended(1, at=1)))]) == 0


@pytest.mark.parametrize(
    ("thing", "count"),
    [
        ({"kind": "Job", "spec": {"parallelism": 4, "completions": 4}}, 4),
        ({"kind": "Pod", "spec": {}}, 1),
        (
            {
                "kind": "JobSet",
                "spec": {
                    "replicatedJobs": [{"replicas": 1, "template": {"spec": {"parallelism": 3}}}, {"replicas": 2}]
                },
            },
            5,
        ),
        ({"kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": {"Master": {}, "Worker": {"replicas": 3}}}}, 4),
        ({"kind": "TrainJob", "spec": {"trainer": {"numNodes": 2}}}, 2),
    ],
)
def test_how_many_pods_print_at_once_is_known_before_they_do(thing: dict[str, Any], count: int) -> None:
    """The first line needs its prefix already."""
    assert planned_pods(thing) == count


@pytest.mark.parametrize(
    ("quantity", "size"),
    [
        ("1127Mi", 1127 << 20),
        ("2G", 2_000_000_000),
        ("500m", 1),
        ("1e3", 1000),
        ("1.5Gi", 1610612736),
        (7, 7),
        (None, 0),
    ],
)
def test_quantities_are_bytes_rounded_up(quantity: object, size: int) -> None:
    """As Kubernetes reads them."""
    assert bytes_of(quantity) == size
