"""The exported admission policies on a real server: it takes them, refuses what they refuse, and lets our own pass."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from launcher.policy.admission import NAMESPACE_LABEL, admission_documents
from launcher.render import render
from tests.jobs import plan_with
from tests.kubernetes.contract.things import ask, talking
from tests.kubernetes.contract.user import Place
from tests.policy.pods import NONE_OF_OURS, OF_SHM, PASSES, changed

API = "/apis/admissionregistration.k8s.io/v1"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
SOON = 60  # seconds until a server applies a policy that was made


@pytest.fixture(scope="module")
def enforced(place: Place) -> Iterator[tuple[Any, str]]:
    """Return a client and a namespace in which policies of our own names deny; both are removed afterwards."""
    name = f"trainlaunch-e2e-{uuid.uuid4().hex[:8]}"
    label = dict.fromkeys(NAMESPACE_LABEL, name)  # no other namespace is under them
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": label}}
    text = json.dumps(admission_documents(None, enforce=True)).replace('"trainlaunch-', f'"{name}-')
    documents = json.loads(text.replace(json.dumps(NAMESPACE_LABEL), json.dumps(label)))
    with talking(place) as api:
        ask(api, "POST", "/api/v1/namespaces", made)
        try:
            for each in documents:
                ask(api, "POST", f"{API}/{PLURALS[each['kind']]}", each)
            _until_applied(api, name)
            yield api, name
        finally:
            for each in documents:
                ask(api, "DELETE", f"{API}/{PLURALS[each['kind']]}/{each['metadata']['name']}")
            ask(api, "DELETE", f"/api/v1/namespaces/{name}")


def _until_applied(api: Any, namespace: str) -> None:
    end = time.monotonic() + SOON
    while "trainlaunch: " not in answer(api, namespace, OF_SHM["not mounted"][0]):
        assert time.monotonic() < end, f"no policy was applied within {SOON} s"
        time.sleep(1)


def answer(api: Any, namespace: str, pod: dict[str, Any], path: str = "/api/v1/namespaces/{}/pods") -> str:
    """Return what the server would say if the object were made; empty where it would be."""
    body = changed("metadata.namespace", namespace, pod)
    request = api.param_serialize(
        "POST", path.format(namespace), body=body, query_params=[("dryRun", "All")], auth_settings=["BearerToken"]
    )
    found = api.call_api(*request)
    return "" if found.status < 300 else found.read().decode()


def plain(pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod with the account that each namespace has."""
    return changed("spec.serviceAccountName", "default", pod)


@pytest.mark.parametrize("name", OF_SHM)
def test_the_server_refuses_a_pod_without_a_sized_volume(enforced: tuple[Any, str], name: str) -> None:
    """With the sentence that says what is missing, where the object is valid at all."""
    pod, expected = OF_SHM[name]
    said = answer(*enforced, plain(pod))
    assert said
    assert "denied request" not in said or any(part in said for part in expected), said


@pytest.mark.parametrize("name", [*PASSES, *NONE_OF_OURS])
def test_the_server_lets_good_pods_pass(enforced: tuple[Any, str], name: str) -> None:
    """And those that are none of ours."""
    assert answer(*enforced, plain({**PASSES, **NONE_OF_OURS}[name])) == ""


def test_the_server_lets_our_own_rendering_pass(enforced: tuple[Any, str], tmp_path: Path) -> None:
    """The Job itself, as `kubectl apply` would bring it."""
    plan = plan_with(tmp_path, "kubernetes", resources={"cpus": 1, "memory": "1Gi", "gpus": 1})
    (made,) = yaml.safe_load_all(render(plan))
    assert answer(*enforced, made, "/apis/batch/v1/namespaces/{}/jobs") == ""
    del made["spec"]["template"]["spec"]["volumes"][0]["emptyDir"]["sizeLimit"]
    assert "needs a sizeLimit above 0" in answer(*enforced, made, "/apis/batch/v1/namespaces/{}/jobs")
