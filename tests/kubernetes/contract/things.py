"""What lies in a namespace, seen past the product: by the official client."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from tests.kubernetes.contract.user import Place

KINDS = (
    "/api/v1:pods",
    "/api/v1:services",
    "/api/v1:configmaps",
    "/api/v1:secrets",
    "/api/v1:persistentvolumeclaims",
    "/apis/batch/v1:jobs",
    "/apis/jobset.x-k8s.io/v1alpha2:jobsets",
    "/apis/kubeflow.org/v1:pytorchjobs",
    "/apis/trainer.kubeflow.org/v1alpha1:trainjobs",
    "/apis/trainer.kubeflow.org/v1alpha1:trainingruntimes",
)


@contextlib.contextmanager
def talking(place: Place) -> Iterator[Any]:
    """Give the official client's ApiClient for a place, and close its connections."""
    from kubernetes import config

    api = config.new_client_from_config(place.kubeconfig)
    try:
        yield api
    finally:
        api.rest_client.pool_manager.clear()


def ask(api: Any, method: str, path: str, body: Any = None) -> Any:
    """Return what the API answers, as plain values; None for 404."""
    request = api.param_serialize(method, path, body=body, auth_settings=["BearerToken"])
    answer = api.call_api(*request)
    data = answer.read()
    if answer.status == 404:
        return None
    assert answer.status < 300, (method, path, answer.status, data)
    return json.loads(data)


def everything(place: Place) -> set[str]:
    """Return `plural/name` of every object in the namespace that a rendering can hold, and more."""
    found: set[str] = set()
    with talking(place) as api:
        for each in KINDS:
            prefix, _, plural = each.partition(":")
            listed = ask(api, "GET", f"{prefix}/namespaces/{place.namespace}/{plural}")
            found |= {f"{plural}/{item['metadata']['name']}" for item in (listed or {}).get("items", [])}
    return found - {"configmaps/kube-root-ca.crt"}  # each namespace gets it a moment after it was made


def refused_pods(place: Place) -> int:
    """Return how often a controller has tried in vain to make a pod."""
    with talking(place) as api:
        listed = ask(api, "GET", f"/api/v1/namespaces/{place.namespace}/events")
    return sum(int(each.get("count") or 1) for each in listed["items"] if each["reason"] == "FailedCreate")


def make_stranger(place: Place, job: str) -> str:
    """Make a ConfigMap whose name looks like the job's and that isn't; return it as `everything` names it."""
    name = f"{job}-notes"
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
    with talking(place) as api:
        ask(api, "POST", f"/api/v1/namespaces/{place.namespace}/configmaps", made)
    return f"configmaps/{name}"


def forbid_pods(place: Place) -> None:
    """Make a quota that allows no pod in a namespace."""
    made = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "no-pods"},
        "spec": {"hard": {"pods": "0"}},
    }
    with talking(place) as api:
        ask(api, "POST", f"/api/v1/namespaces/{place.namespace}/resourcequotas", made)


def allow_pods(place: Place) -> None:
    """Take that quota away."""
    with talking(place) as api:
        ask(api, "DELETE", f"/api/v1/namespaces/{place.namespace}/resourcequotas/no-pods")
