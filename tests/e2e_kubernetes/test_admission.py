"""The exported admission policies on a real server: it takes them, refuses what they refuse, and lets our own pass."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.job.ceilings import Policy
from trainlaunch.policy import policies_in
from trainlaunch.policy.admission import ENFORCE, LABEL, admission_documents
from trainlaunch.render import render

from tests import plain_yaml
from tests.jobs import plan_with
from tests.kubernetes.contract.things import ask, talking
from tests.kubernetes.contract.user import Place
from tests.policy.pods import (
    DIGEST,
    EPHEMERAL,
    NGINX,
    NONE_OF_OURS,
    OF_SHM,
    OWNER,
    PASSES,
    SHM,
    VGPU,
    changed,
    cron_job,
    gpu_pod,
    job,
)

API = "/apis/admissionregistration.k8s.io/v1"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
ASKS = {
    "max": {"memory": "64Gi", "cpus": 8, "gpus": 8, "total_gpus": 16, "active_deadline": "1d"},
    "allowed_registries": ["registry.example.com/ml"],
    "allowed_claims": ["data"],
}
DEADLINE = "activeDeadlineSeconds of at most 86400"
OLD = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "old"}}
SOON = 60  # seconds until a server applies a policy that was made


@contextlib.contextmanager
def enforcing(
    place: Place,
    policy: Policy | None,
    before: Sequence[dict[str, Any]] = (),
    *,
    mutating: str | None = None,
    value: str = ENFORCE,
) -> Iterator[tuple[Any, str]]:
    """Give a client and a namespace under policies of our own names, whose label there has a value.

    `before` was made in it before them. They deny, or repair where `mutating` names the version of that API.
    """
    name = f"trainlaunch-e2e-{uuid.uuid4().hex[:8]}"
    label = f"trainlaunch.dev/{name}"  # no other namespace is under them
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {label: value}}}
    text = json.dumps(admission_documents(policy, enforce=True, mutating=mutating)).replace(LABEL, label)
    documents = json.loads(text.replace('"trainlaunch-', f'"{name}-').replace(f"{name}-shm", "trainlaunch-shm"))
    with talking(place) as api:
        ask(api, "POST", "/api/v1/namespaces", made)
        try:
            until(lambda: ask(api, "GET", f"/api/v1/namespaces/{name}/serviceaccounts/default"), "no default account")
            for each in before:
                assert answer(api, name, each, dry_run=False) == ""
            for each in documents:
                ask(api, "POST", f"/apis/{each['apiVersion']}/{PLURALS[each['kind']]}", each)
            bad = plain(OF_SHM["not mounted"][0])
            done = ("trainlaunch: ", "trainlaunch.dev/repaired")
            until(lambda: any(each in sent(api, name, bad)[1] for each in done), "no policy was applied")
            yield api, name
        finally:
            for each in documents:
                ask(api, "DELETE", f"/apis/{each['apiVersion']}/{PLURALS[each['kind']]}/{each['metadata']['name']}")
            ask(api, "DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="module")
def enforced(place: Place) -> Iterator[tuple[Any, str]]:
    """Return a client and a namespace under the rules of /dev/shm alone."""
    with enforcing(place, None) as found:
        yield found


@pytest.fixture(scope="module")
def asked(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    """Return a client and a namespace under a policy, with a pod and a Job that it lets pass and a Job from before."""
    folder = tmp_path_factory.mktemp("policy")
    (folder / ".git").mkdir()
    (folder / "trainlaunch-policy.yaml").write_text(plain_yaml.dump(ASKS))
    old = changed("metadata.name", "old", changed(f"spec.template.{SHM}", {}, own_job(suspend=True)))
    with enforcing(place, policies_in(folder), [old]) as (api, name):
        for each in (plain(gpu_pod()), own_job(activeDeadlineSeconds=3600)):
            assert answer(api, name, each, dry_run=False) == ""
        yield api, name


def until(found: Callable[[], object], otherwise: str) -> None:
    end = time.monotonic() + SOON
    while not found():
        assert time.monotonic() < end, f"{otherwise} within {SOON} s"
        time.sleep(1)


def answer(
    api: Any, namespace: str, obj: dict[str, Any], part: str = "", *, patch: Any = None, dry_run: bool = True
) -> str:
    """Return what the server says if the object is made, or changed by a patch; empty where it takes it."""
    status, text, _ = sent(api, namespace, obj, part, patch=patch, dry_run=dry_run)
    return "" if status < 300 else text


def sent(
    api: Any, namespace: str, obj: dict[str, Any], part: str = "", *, patch: Any = None, dry_run: bool = True
) -> tuple[int, str, str]:
    """Return the server's status, its answer and its warnings."""
    group = f"apis/{obj['apiVersion']}" if "/" in obj["apiVersion"] else f"api/{obj['apiVersion']}"
    path = f"/{group}/namespaces/{namespace}/{obj['kind'].lower()}s"
    method, headers = "POST", {}
    if patch is not None:
        path = f"{path}/{obj['metadata']['name']}{part}"
        method, headers = "PATCH", {"Content-Type": "application/strategic-merge-patch+json"}
    request = api.param_serialize(
        method,
        path,
        body=changed("metadata.namespace", namespace, obj) if patch is None else patch,
        query_params=[("dryRun", "All")] if dry_run else [],
        header_params=headers,
        auth_settings=["BearerToken"],
    )
    found = api.call_api(*request)
    return found.status, found.read().decode(), found.getheader("Warning") or ""


def plain(pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod with the account that each namespace has."""
    return changed("spec.serviceAccountName", "default", pod)


def own_job(**spec: Any) -> dict[str, Any]:
    """Return a Job of such pods with the account that each namespace has, and without a queue."""
    made = plain(job(**spec)["spec"]["template"])
    return changed("metadata.labels", {}, changed("spec.template", made, job(**spec)))


@pytest.mark.parametrize("policy", ["pods", "templates"])
@pytest.mark.parametrize("under", ["enforced", "asked"])
def test_no_expression_has_a_type_warning(request: pytest.FixtureRequest, under: str, policy: str) -> None:
    """A server checks the types of each validation for each kind that its policy matches, and says so in its status."""
    api, name = request.getfixturevalue(under)
    path = f"{API}/{PLURALS['ValidatingAdmissionPolicy']}/{name}-{policy}"

    def checking() -> dict[str, Any] | None:
        status = ask(api, "GET", path).get("status") or {}
        return status.get("typeChecking") if status.get("observedGeneration") else None

    until(lambda: checking() is not None, "no types were checked")
    assert checking() == {}


@pytest.mark.parametrize("name", OF_SHM)
def test_the_server_refuses_a_pod_without_a_sized_volume(enforced: tuple[Any, str], name: str) -> None:
    """With the sentence that says what is missing, where the object is valid at all."""
    pod, expected = OF_SHM[name]
    said = answer(*enforced, plain(pod))
    assert any(part in said for part in expected), said


@pytest.mark.parametrize("name", [*PASSES, *NONE_OF_OURS])
def test_the_server_lets_good_pods_pass(enforced: tuple[Any, str], name: str) -> None:
    """And those that are none of ours."""
    assert answer(*enforced, plain({**PASSES, **NONE_OF_OURS}[name])) == ""


def test_the_server_lets_our_own_rendering_pass(enforced: tuple[Any, str], tmp_path: Path) -> None:
    """The Job itself, as `kubectl apply` would bring it."""
    plan = plan_with(tmp_path, "kubernetes", resources={"cpus": 1, "memory": "1Gi", "gpus": 1})
    (made,) = plain_yaml.load_all(render(plan))
    assert answer(*enforced, made) == ""
    del made["spec"]["template"]["spec"]["volumes"][0]["emptyDir"]["sizeLimit"]
    assert "needs a sizeLimit above 0" in answer(*enforced, made)


def sized(**limits: str) -> dict[str, Any]:
    """Return the patch of a resize."""
    return {"spec": {"containers": [{"name": "train", "resources": {"limits": limits, "requests": limits}}]}}


def debugger(image: str) -> dict[str, Any]:
    """Return the patch of `kubectl debug`."""
    return {"spec": {"ephemeralContainers": [{"name": "debugger", "image": image, "targetContainerName": "train"}]}}


# What is changed, by which subresource and how, and what the server says.
CHANGES = {
    "a resize within": (gpu_pod(), "/resize", sized(memory="40Gi"), ""),
    "a resize above": (gpu_pod(), "/resize", sized(memory="65Gi"), "a limit of memory of at most 64Gi"),
    "a resize to below /dev/shm": (gpu_pod(), "/resize", sized(memory="8Gi"), "must be below the memory limit"),
    "debug": (gpu_pod(), "/ephemeralcontainers", debugger(DIGEST), ""),
    "debug with a foreign image": (gpu_pod(), "/ephemeralcontainers", debugger(NGINX), "images come from"),
    "another image": (
        gpu_pod(),
        "",
        {"spec": {"containers": [{"name": "train", "image": NGINX}]}},
        "images come from",
    ),
    "a label of nobody's": (gpu_pod(), "", {"metadata": {"labels": {"a": "b"}}}, ""),
    "a Job that is suspended": (job(), "", {"spec": {"suspend": True}}, ""),
    "a Job of two": (job(), "", {"spec": {"parallelism": 2}}, ""),
    "a Job of three": (job(), "", {"spec": {"parallelism": 3}}, "at most 16 GPUs"),
    "a Job without deadline": (job(), "", {"spec": {"activeDeadlineSeconds": None}}, DEADLINE),
    "a Job from before that starts": (OLD, "", {"spec": {"suspend": False}}, ""),
    "a Job from before of two": (OLD, "", {"spec": {"parallelism": 2}}, ""),
    "a Job from before that waits for other nodes": (
        OLD,
        "",
        {"spec": {"suspend": False, "template": {"spec": {"nodeSelector": {"gpu": "a100"}}}}},
        "",
    ),
}
ENDLESS = changed("spec.activeDeadlineSeconds", None, own_job())
BY_CRON = {**OWNER, "kind": "CronJob"}
MADE = {
    "a pod of a forged owner": (
        changed("metadata.ownerReferences", [OWNER], changed("spec.activeDeadlineSeconds", None, plain(gpu_pod()))),
        DEADLINE,
    ),
    "a Job by hand from a CronJob": (changed("metadata.ownerReferences", [BY_CRON], ENDLESS), DEADLINE),
    "a CronJob": (cron_job(own_job()), ""),
    "a CronJob without deadline": (cron_job(ENDLESS), DEADLINE),
    "a claim made with the pod": (
        changed("spec.volumes.2", {"name": "e", "ephemeral": EPHEMERAL}, plain(gpu_pod())),
        "claims are data",
    ),
    "a volume of CSI": (
        changed("spec.volumes.2", {"name": "e", "csi": {"driver": "x"}}, plain(gpu_pod())),
        "claims are data",
    ),
    "a part of a GPU": (changed("spec.containers.1", VGPU, plain(gpu_pod())), "resources beside GPUs"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_server_asks_of_changes_what_it_asks_of_new_objects(asked: tuple[Any, str], name: str) -> None:
    """By `kubectl patch`, `kubectl debug` and a resize; what was there before the policy may wait and start."""
    obj, part, patch, expected = CHANGES[name]
    said = answer(*asked, obj, part, patch=patch)
    assert expected in said if expected else said == "", said


@pytest.mark.parametrize("name", MADE)
def test_the_server_takes_no_owner_for_a_deadline(asked: tuple[Any, str], name: str) -> None:
    """Only what a judged object's controller made has its deadline there; other ways around are refused as well."""
    obj, expected = MADE[name]
    said = answer(*asked, changed("metadata.name", "new", obj))
    assert expected in said if expected else said == "", said


def test_the_job_controller_may_make_the_pods_of_a_judged_job(asked: tuple[Any, str]) -> None:
    """They have no deadline of their own; the name of its account is the one that the policy trusts."""
    api, namespace = asked
    path = f"/api/v1/namespaces/{namespace}/pods?labelSelector=batch.kubernetes.io%2Fjob-name%3Dtrain"
    until(lambda: ask(api, "GET", path)["items"], "the Job got no pod")
