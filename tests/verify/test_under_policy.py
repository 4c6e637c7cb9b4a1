"""What is reached by another spelling, another kind of object or another container is held to the policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trainlaunch.errors import JobFileRejected

from tests.jobs import plan_with
from tests.verify.test_patchable import SERVICE, SIDECAR, added, refusals, said
from tests.verify.test_patched import POD, TRAIN

TEMPLATE = "/spec/replicatedJobs/0/template"
RUNTIME = f"/spec/template{TEMPLATE}"
REPLICAS = "/spec/pytorchReplicaSpecs/Worker"
DECIDED: list[tuple[str, dict[str, Any]]] = [
    ("jobset", {"path": "/spec/replicatedJobs/0/replicas", "value": 9}),
    ("jobset", {"path": f"{TEMPLATE}/spec/parallelism", "value": 9}),
    ("jobset", {"path": f"{TEMPLATE}/spec/activeDeadlineSeconds", "value": 999999}),
    ("jobset", {"path": f"{TEMPLATE}/spec/backoffLimit", "value": 9}),
    ("jobset", {"path": f"{TEMPLATE}/spec/template/metadata/labels/team", "value": "other"}),
    ("jobset", {"path": "/spec/failurePolicy/maxRestarts", "value": 9}),
    ("trainjob", {"kind": "TrainingRuntime", "path": "/spec/mlPolicy/numNodes", "value": 9}),
    ("trainjob", {"kind": "TrainingRuntime", "path": f"{RUNTIME}/spec/parallelism", "value": 9}),
    ("trainjob", {"path": "/spec/runtimeRef/name", "value": "another"}),
    ("pytorchjob", {"path": f"{REPLICAS}/replicas", "value": 9}),
    ("pytorchjob", {"path": f"{REPLICAS}/restartPolicy", "value": "Always"}),
    ("pytorchjob", {"path": "/spec/runPolicy/activeDeadlineSeconds", "value": 999999}),
    ("job", {"path": "/metadata/labels/kueue.x-k8s.io~1queue-name", "value": "fast"}),
    ("job", {"path": f"{POD}/subdomain", "value": "another"}),
    ("job", {"kind": "Service", "path": "/spec/selector", "value": {"app": "another"}}),
    ("job", {"kind": "Service", "path": "/spec/clusterIP", "value": "10.0.0.1"}),
]


@pytest.mark.parametrize("op", ["replace", "remove"])
@pytest.mark.parametrize(("kind", "operation"), DECIDED, ids=lambda each: str(each)[:70])
def test_no_patch_changes_what_a_kind_says_of_its_pods(
    tmp_path: Path, kind: str, operation: dict[str, Any], op: str
) -> None:
    """How many, how long, where they queue and what is done when one fails; other kinds than Job were open."""
    fields = {
        "kubernetes": {"kind": kind, "queue": "slow"},
        "torchrun": {"nnodes": 2, "nproc_per_node": 1},
        "active_deadline": "1h",
        "labels": {"team": "x"},
    }
    left = {key: each for key, each in operation.items() if op == "replace" or key != "value"}
    assert said(tmp_path, "kubernetes", [{"op": op, **left}], **fields)


def test_no_patch_adds_to_a_list_that_a_kind_has(tmp_path: Path) -> None:
    """A rule of failures behind ours counts too."""
    rule = {"name": "x", "action": "RestartJobSet"}
    assert said(
        tmp_path,
        "kubernetes",
        added("/spec/failurePolicy/rules/-", rule),
        kubernetes={"kind": "jobset"},
        torchrun={"nnodes": 2, "nproc_per_node": 1},
    )


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (f"{POD}/serviceAccountName", "admin", "kubernetes.service_account"),
        (f"{POD}/automountServiceAccountToken", True, "kubernetes.token"),
        (f"{POD}/priorityClassName", "high", "kubernetes.priority_class"),
    ],
)
def test_what_a_policy_lists_has_a_field(tmp_path: Path, path: str, value: Any, field: str) -> None:
    """A patch of it passed allowed_service_accounts, forbid_token and allowed_priority_classes."""
    (found,) = refusals(tmp_path, "kubernetes", added(path, value))
    assert found.fix.startswith(f"write {field} instead")


def side(**more: Any) -> dict[str, Any]:
    """Return a patch that adds a service."""
    return {"services": {"x": {**SERVICE, **more}}}


def own(**more: Any) -> dict[str, Any]:
    """Return a patch of the job's own service."""
    return {"services": {"digits": more}}


def flags(*words: str) -> dict[str, Any]:
    """Return a patch of docker run."""
    return {"extra_args": list(words)}


OVERLAY = (
    'type=volume,source=v,target=/in,volume-opt=type=overlay,volume-opt=device=overlay,"volume-opt=o=lowerdir=/etc"'
)
BIND = "type=volume,source=v,target=/in,volume-opt=type=tmpfs,volume-opt=o=bind,volume-opt=device=etc"
TOKEN = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
HOST, FREE = "allowed_host_paths: [/data]", "allowed_pod_security: [privileged]"
BEYOND: list[tuple[str, Any, str, str]] = [
    ("docker", flags("--network", "name=host"), "{}", FREE),
    ("docker", flags("--network=alias=x,NAME=Host"), "{}", FREE),
    ("docker", flags("--network", "container:x"), "{}", FREE),
    ("docker", flags("--pid=container:x"), "{}", FREE),
    ("docker", flags("--security-opt", "seccomp=/tmp/all.json"), "{}", FREE),
    ("docker", flags("--security-opt", "label:type:spc_t"), "{}", FREE),
    ("docker", flags("--security-opt", "no-new-privileges=false"), "{}", FREE),
    ("docker", flags("--use-api-socket"), "{}", FREE),
    ("docker", flags("--device-cgroup-rule", "a *:* rwm"), "{}", FREE),
    ("docker", flags("--device", "/dev/sda"), HOST, "allowed_host_paths: [/dev/sda]"),
    ("docker", flags("--device=/dev/../dev/mem:/x:rwm"), HOST, "allowed_host_paths: [/dev]"),
    ("docker", flags("--mount", OVERLAY), HOST, "allowed_host_paths: [/etc]"),
    ("docker", flags("--mount", BIND), HOST, "allowed_host_paths: [/etc]"),
    ("compose", own(network_mode="container:x"), "{}", FREE),
    ("compose", own(pid="container:x"), "{}", FREE),
    ("compose", own(security_opt=["seccomp:all.json"]), "{}", FREE),
    ("compose", own(device_cgroup_rules=["a *:* rwm"]), "{}", FREE),
    ("compose", {"networks": {"default": {"external": True, "name": "host"}}}, "{}", FREE),
    ("compose", own(devices=["/dev/sda"]), HOST, "allowed_host_paths: [/dev]"),
    ("compose", side(ipc="host"), "{}", FREE),
    ("compose", side(volumes_from=["container:x"]), "{}", FREE),
    ("compose", side(post_start=[{"command": "id", "privileged": True}]), "{}", FREE),
    ("compose", side(pre_stop=[{"command": "id", "privileged": True}]), "{}", FREE),
    ("compose", side(build={"context": "./x", "entitlements": ["security.insecure"]}), "{}", FREE),
    ("compose", side(build={"context": "/data", "network": "host"}), "{}", FREE),
    ("compose", side(build={"context": "/etc"}), HOST, "allowed_host_paths: [/etc]"),
    ("compose", side(volumes=[{"type": "bind", "source": "etc", "target": "/in"}]), HOST, "{}"),
    (
        "compose",
        {"volumes": {"v": {"driver_opts": {"type": "overlay", "o": "lowerdir=/etc", "device": "overlay"}}}},
        HOST,
        "allowed_host_paths: [/etc]",
    ),
    ("compose", side(build="./x"), "allowed_registries: [docker.io]", "{}"),
    ("compose", side(build="./x"), "require_digest: true", "require_digest: false"),
    (
        "compose",
        side(volumes=[{"type": "image", "source": "evil.example/x", "target": "/in"}]),
        "allowed_registries: [docker.io]",
        HOST,
    ),
    ("docker", flags("--cap-add", "SYS_PTRACE"), "{}", "allowed_capabilities: [CAP_SYS_PTRACE]"),
    ("kubernetes", added(f"{POD}/volumes/-", TOKEN), "forbid_token: true", "forbid_token: false"),
]


@pytest.mark.parametrize(("target", "patch", "policy", "other"), BEYOND, ids=lambda each: str(each)[:80])
def test_another_spelling_is_held_too(tmp_path: Path, target: str, patch: Any, policy: str, other: str) -> None:
    """Without a policy it is free, and under one that allows it."""
    fields = {"image": f"docker.io/library/a@sha256:{'0' * 64}"}
    assert not said(tmp_path, target, patch, **fields)
    file = tmp_path / "trainlaunch-policy.yaml"
    file.write_text(f"{policy}\n")
    assert said(tmp_path, target, patch, **fields)
    file.write_text(f"{other}\n")
    assert not said(tmp_path, target, patch, **fields)


CLAIM = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
FROM_ELSEWHERE = {"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}
DOORS: list[tuple[str, Any]] = [
    ("docker", flags("-e", "NVIDIA_VISIBLE_DEVICES")),
    ("docker", flags("--device", "/dev//nvidia0")),
    ("docker", flags("--device", "/dev/./dri")),
    ("docker", flags("--device=/dev/char/195:0")),
    ("docker", flags("--annotation", "cdi.k8s.io/x=nvidia.com/gpu=all")),
    ("compose", own(annotations={"cdi.k8s.io/x": "nvidia.com/gpu=all"})),
    ("kubernetes", added(f"{TRAIN}/env/-", FROM_ELSEWHERE)),
    ("kubernetes", added(f"{POD}/containers/-", {**SIDECAR, "env": [FROM_ELSEWHERE]})),
    ("kubernetes", added(f"{POD}/resourceClaims", [CLAIM])),
]


@pytest.mark.parametrize(("target", "patch"), DOORS, ids=str)
def test_gpus_come_by_no_other_spelling(tmp_path: Path, target: str, patch: Any) -> None:
    """A value from elsewhere may be any, and a node of the host any device."""
    assert not said(tmp_path, target, patch)
    (tmp_path / "trainlaunch-policy.yaml").write_text("max: {total_gpus: 1}\n")
    assert said(tmp_path, target, patch)


@pytest.mark.parametrize(("target", "patch"), [("docker", flags("--device=/dev/infiniband/uverbs0:/dev/x:rw"))])
def test_other_devices_are_no_gpus(tmp_path: Path, target: str, patch: Any) -> None:
    """RDMA and fuse have nodes of their own."""
    (tmp_path / "trainlaunch-policy.yaml").write_text("max: {gpus: 1}\n")
    assert not said(tmp_path, target, patch)
    assert not said(tmp_path, "compose", own(devices=["/dev/fuse"]))


def test_a_secret_is_a_door_too(tmp_path: Path) -> None:
    """It sets the variable that NVIDIA's runtime reads, to whatever the host has."""
    (tmp_path / "trainlaunch-policy.yaml").write_text("max: {gpus: 1}\n")
    with pytest.raises(JobFileRejected) as caught:
        plan_with(tmp_path, secrets={"NVIDIA_VISIBLE_DEVICES": {"env": "ANY"}})
    assert caught.value.diagnostics[0].field == "secrets.NVIDIA_VISIBLE_DEVICES"


def test_no_added_service_has_a_label_of_ours(tmp_path: Path) -> None:
    """Containers of a job are found by them."""
    assert said(tmp_path, "compose", side(labels={"dev.trainlaunch.job": "digits"}))


@pytest.mark.parametrize(
    "patch",
    [
        {"volumes": {"data": {"name": "another"}}},
        {"volumes": {"data": None}},
        {"networks": {"default": {"labels": None}}},
        {"networks": {"default": {"labels": {"dev.trainlaunch.job": "another"}}}},
    ],
    ids=str,
)
def test_no_merge_patch_puts_another_volume_in_place_of_the_jobs(tmp_path: Path, patch: dict[str, Any]) -> None:
    """The mount says the same name, and another team's data would be behind it."""
    assert said(tmp_path, "compose", patch)


def test_a_merge_patch_adds_to_networks_and_volumes(tmp_path: Path) -> None:
    """A smaller MTU, and where a volume lies, have no field of the job file."""
    nfs = {"type": "nfs", "o": "addr=10.0.0.1", "device": ":/data"}
    assert not said(tmp_path, "compose", {"volumes": {"data": {"driver_opts": nfs}}})
    assert not said(tmp_path, "compose", {"networks": {"default": {"driver_opts": {"mtu": "1400"}}}})
