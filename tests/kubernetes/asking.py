"""A small Job, and what tests of the server ask about it."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

import pytest
from kubernetes import client as official

from tests import plain_yaml
from tests.kubernetes.kinds import RESOURCES
from tests.kubernetes.logs import LogOptions
from tests.kubernetes.server import FakeCluster

JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "digits", "labels": {"app": "digits"}},
    "spec": {
        "backoffLimit": 0,
        "template": {
            "metadata": {"labels": {"app": "digits"}},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 5,
                "containers": [{"name": "train", "image": "trainer:1", "args": ["true"]}],
            },
        },
    },
}


def job(**spec: Any) -> dict[str, Any]:
    """Return the Job with other fields of its spec."""
    made: dict[str, Any] = json.loads(json.dumps(JOB))
    made["spec"] |= spec
    return made


def create(api: Any, body: dict[str, Any], **query: str) -> Any:
    """Create a Job as raw JSON, as a client does that wants the server's own judgement."""
    jobs = official.CustomObjectsApi(api)
    return jobs.create_namespaced_custom_object("batch", "v1", "team", "jobs", body, **query)


def apply(fake: FakeCluster, text: str) -> None:
    """Create the objects of a manifest, as `kubectl apply` does for the first time."""
    paths = {
        each.kind: f"/api{'s' * bool(each.group)}/{each.api_version}/namespaces/team/{each.plural}"
        for each in RESOURCES
    }
    for document in filter(None, plain_yaml.load_all(text)):
        key = {"Authorization": f"Bearer {fake.token}"}
        body = json.dumps(document).encode()
        asked = urllib.request.Request(f"{fake.url}{paths[document['kind']]}", body, key)  # noqa: S310 - our own server
        urllib.request.urlopen(asked).close()  # noqa: S310 - the same


def refusal(api: Any, body: dict[str, Any], **query: str) -> dict[str, Any]:
    """Return the Status that a Job is refused with."""
    with pytest.raises(official.ApiException) as refused:
        create(api, body, **query)
    status: dict[str, Any] = json.loads(refused.value.body)
    assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", refused.value.status)
    return status


def ended(api: Any, name: str = "digits") -> Any:
    """Return a Job's status once it is over."""
    found: list[Any] = []

    def over() -> bool:
        found[:] = [official.BatchV1Api(api).read_namespaced_job(name, "team").status]
        return any(each.type in ("Complete", "Failed") for each in found[0].conditions or [])

    wait_until(over)
    return found[0]


def wait_until(holds: Any, seconds: float = 20.0) -> None:
    """Return once something holds."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it never held"
        time.sleep(0.02)


def log_of(fake: FakeCluster) -> list[bytes]:
    """Return the log of the only pod so far, empty before its kubelet has seen it."""
    (pod,) = fake.pods()
    if pod["metadata"]["uid"] not in fake.kubelet.pods:
        return []
    return list(fake.kubelet.log_of(pod).read(LogOptions()))
