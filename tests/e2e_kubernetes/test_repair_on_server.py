"""Pods repaired by a real server of 1.36 or later: what only it can show. Not yet run on one.

The patches were applied to the same pods by the packages of an API server of 1.34 alone, outside of these tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e_kubernetes.test_admission import ask, enforcing, sent, until
from tests.kubernetes.contract.user import Place
from tests.policy.foreign_pods import LEFT, REPAIRED
from tests.policy.pods import changed
from tests.policy.test_repair import without_repair

# What a server gives each object anew.
OWN = ("creationTimestamp", "uid", "name", "namespace", "managedFields", "resourceVersion")
NO_TOKEN = "spec.automountServiceAccountToken"


@pytest.fixture(scope="module")
def repairing(place: Place) -> Iterator[tuple[Any, str]]:
    """Return a client and a namespace in which pods are repaired."""
    with enforcing(place, None, mutating="v1", value="repair") as found:
        yield found


@pytest.fixture(scope="module")
def enforced(place: Place) -> Iterator[tuple[Any, str]]:
    """Return a client and a namespace in which pods are repaired, and those that are left refused."""
    with enforcing(place, None, mutating="v1", value="enforce") as found:
        yield found


def made(api: Any, namespace: str, pod: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return a pod as a dry run makes it, without what each has of its own, and the warnings; None: it is refused."""
    status, text, warnings = sent(api, namespace, changed(NO_TOKEN, False, pod))
    if status >= 300:
        return None, text
    found = json.loads(text)
    for key in OWN:
        found["metadata"].pop(key, None)
    return found, warnings


def test_the_server_repairs_what_lacks_dev_shm_and_nothing_else(repairing: tuple[Any, str]) -> None:
    """A pod is the one of a namespace without policies but for the repair; one that no server takes is not compared."""
    api, namespace = repairing
    compared = {"repaired": 0, "left": 0}
    for case in (*REPAIRED.values(), *LEFT.values()):
        plain, _ = made(api, "default", case["pod"])
        found, warnings = made(api, namespace, case["pod"])
        if plain is None or found is None:
            assert (plain, found) == (None, None), case["name"]
        elif "size" in case:
            assert without_repair(found, plain) == plain, case["name"]
            compared["repaired"] += 1
        else:
            assert found == plain, case["name"]
            assert (case["why"] in warnings) == bool(case.get("warned")), case["name"]
            compared["left"] += 1
    assert compared["repaired"] >= 40
    assert compared["left"] >= 60


def test_a_job_without_dev_shm_is_applied_and_its_pod_is_repaired(enforced: tuple[Any, str]) -> None:
    """What makes pods passes where they are repaired, and the controller's pod has the volume."""
    api, namespace = enforced
    spec = {**REPAIRED["lone-gpu"]["spec"], "restartPolicy": "Never"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "foreign"}}
    assert sent(api, namespace, {**job, "spec": {"template": {"spec": spec}}}, dry_run=False)[0] == 201
    path = f"/api/v1/namespaces/{namespace}/pods?labelSelector=batch.kubernetes.io%2Fjob-name%3Dforeign"
    until(lambda: ask(api, "GET", path)["items"], "the Job got no pod")
    (pod,) = ask(api, "GET", path)["items"]
    size = {"medium": "Memory", "sizeLimit": "16Gi"}
    assert {"name": "trainlaunch-shm", "emptyDir": size} in pod["spec"]["volumes"]
    assert "trainlaunch.dev/repaired" in pod["metadata"]["annotations"]


def test_what_is_left_is_refused_where_that_is_enforced(enforced: tuple[Any, str]) -> None:
    """And what was repaired is not."""
    api, namespace = enforced
    assert sent(api, namespace, REPAIRED["lone-gpu"]["pod"])[0] == 201
    assert "sizeLimit" in sent(api, namespace, LEFT["no-memory-limit"]["pod"])[1]
