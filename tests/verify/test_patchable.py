"""No patch undoes the proof: what it may bring is listed, and every field of the official schemas is tried."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import JobFileRejected
from trainlaunch.kinds import KINDS
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render, unpatched
from trainlaunch.render.apply_patch import documents_of
from trainlaunch.verify import verified
from trainlaunch.verify.expected_workload import parse_rendering
from trainlaunch.verify.pod_security import violations

from tests.conftest import ROOT
from tests.jobs import plan_with
from tests.sampling import diagonals
from tests.verify.test_patched import CONFINED, POD, TRAIN, patched_plan

CODES = {"TL105", "TL140", "TL145", "TL146", "TL152"}
SIDECAR = {"name": "x", "image": "a:1", "resources": {"limits": {"memory": "1Gi"}}, "securityContext": CONFINED}
ROOT_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"hostPID": True}}


def said(folder: Path, target: str, patch: Any, **fields: Any) -> list[str]:
    """Return the messages of a patch that is refused; none where it is taken."""
    found = refusals(folder, target, patch, **fields)
    assert badly_said(found) == []
    return [each.message for each in found]


def badly_said(found: Iterable[Diagnostic]) -> list[str]:
    """Return the messages without a place or a fix, or with a code that is not about patches."""
    return [each.message for each in found if each.code not in CODES or each.span is None or not each.fix]


def refusals(folder: Path, target: str, patch: Any, **fields: Any) -> tuple[Diagnostic, ...]:
    """Return what is wrong with a patch."""
    try:
        taken(folder, target, patch, **fields)
    except JobFileRejected as rejected:
        return rejected.diagnostics
    return ()


def taken(folder: Path, target: str, patch: Any, **fields: Any) -> tuple[LaunchPlan, str]:
    """Return the plan of a job with a patch, and its text. Raises JobFileRejected where it is refused."""
    plan = patched_plan(folder, target, patch, **fields)
    return plan, verified(plan, render(plan))


def added(path: str, value: Any, op: str = "add") -> list[dict[str, Any]]:
    """Return a patch of one operation."""
    return [{"op": op, "path": path, "value": value}]


ATTACKS = {
    "items, which kubectl takes for a List": added("/items", [ROOT_POD]),
    "another kind": added("/kind", "CronJob", "replace"),
    "another apiVersion": added("/apiVersion", "v1", "replace"),
    "the container as an init container": [
        {"op": "add", "path": f"{POD}/initContainers", "value": []},
        {"op": "move", "from": f"{POD}/containers/0", "path": f"{POD}/initContainers/0"},
    ],
    "the container twice": [
        {"op": "add", "path": f"{POD}/initContainers", "value": []},
        {"op": "copy", "from": f"{POD}/containers/0", "path": f"{POD}/initContainers/0"},
    ],
    "restartPolicy of the container": added(f"{TRAIN}/restartPolicy", "Always"),
    "rules of restarts": added(f"{TRAIN}/restartPolicyRules", [{"action": "Restart"}]),
    "a hook of the container": added(f"{TRAIN}/lifecycle", {"postStart": {"exec": {"command": ["true"]}}}),
    "an ephemeral container": added(f"{POD}/ephemeralContainers", [SIDECAR]),
    "limits of the whole pod": added(f"{POD}/resources", {"limits": {"memory": "64Gi"}}),
    "a second pod template": added("/spec/another", {"spec": {"containers": [SIDECAR]}}),
    "status": added("/status", {}),
    "a privileged sidecar": added(f"{POD}/containers/-", {**SIDECAR, "securityContext": {"privileged": True}}),
    "a sidecar that states nothing": added(f"{POD}/containers/-", {**SIDECAR, "securityContext": {}}),
    "a folder of the host": added(f"{POD}/volumes/-", {"name": "h", "hostPath": {"path": "/"}}),
    "processes of the host": added(f"{POD}/hostPID", True),
    "network of the host": added(f"{POD}/hostNetwork", True),
    "a capability": added(f"{TRAIN}/securityContext/capabilities/add", ["SYS_ADMIN"]),
    "privileged": added(f"{TRAIN}/securityContext/privileged", True),
    "escalation": added(f"{TRAIN}/securityContext/allowPrivilegeEscalation", True, "replace"),
    "unconfined": added(f"{POD}/securityContext/seccompProfile/type", "Unconfined", "replace"),
    "root": added(f"{TRAIN}/securityContext/runAsUser", 0),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_json_patch_undoes_the_proof(tmp_path: Path, name: str) -> None:
    """Each was taken once, and gave other pods or other rights than the plan says."""
    assert said(tmp_path, "kubernetes", ATTACKS[name])


SERVICE_ATTACKS: dict[str, Any] = {
    "provider": {"type": "sh", "options": {"c": "id"}},
    "build": {"context": "."},
    "scale": 2,
    "env_file": [".env"],
    "label_file": ["labels"],
    "post_start": [{"command": ["true"]}],
    "pre_stop": [{"command": ["true"]}],
    "develop": {"watch": []},
    "models": ["x"],
    "extends": {"service": "y"},
    "configs": [{"source": "x", "target": "/dev/shm"}],
    "secrets": [{"source": "x", "target": "/dev/shm/y/../../shm"}],
    "use_api_socket": True,
    "stdin_open": True,
    "mem_swapiness": 0,
}


@pytest.mark.parametrize("key", SERVICE_ATTACKS)
def test_no_merge_patch_undoes_the_proof(tmp_path: Path, key: str) -> None:
    """A provider is a program of the host that Compose starts as root, in place of any container."""
    patch = {"services": {"digits": {key: SERVICE_ATTACKS[key]}}, "configs": {"x": {"content": "x"}}}
    messages = said(tmp_path, "compose", patch, secrets={})
    assert any("digits" in each for each in messages), messages


@pytest.mark.parametrize("key", ["provider", "env_file", "extends", "use_api_socket"])
def test_no_added_service_starts_what_nobody_reads(tmp_path: Path, key: str) -> None:
    """Those beside the job's are the patch's, and containers."""
    service = {"image": "a:1", key: SERVICE_ATTACKS[key]}
    assert any(key in each for each in said(tmp_path, "compose", {"services": {"side": service}}))


def test_a_misspelt_key_gets_the_nearest(tmp_path: Path) -> None:
    """It would be dropped by the server, or refused there."""
    (found,) = refusals(tmp_path, "kubernetes", added(f"{POD}/hostAlias", []))
    assert "write hostAliases" in found.fix


def test_privileges_are_stated_in_the_job_and_allowed_by_its_policies(tmp_path: Path) -> None:
    """kubernetes.pod_security says that they are meant; a policy, where there is one, that they may be."""
    patch = added(f"{TRAIN}/securityContext", {"privileged": True})
    how: dict[str, Any] = {"kubernetes": {"pod_security": "privileged"}}
    assert said(tmp_path, "kubernetes", patch)
    assert not said(tmp_path, "kubernetes", patch, **how)
    policy = tmp_path / "trainlaunch-policy.yaml"
    policy.write_text("{}\n")
    assert said(tmp_path, "kubernetes", patch, **how)
    policy.write_text("allowed_pod_security: [privileged]\n")
    assert not said(tmp_path, "kubernetes", patch, **how)


BIND = {"type": "bind", "source": "/data", "target": "/in"}
HOST: list[tuple[str, Any, str]] = [
    ("docker", {"extra_args": ["--privileged"]}, "allowed_pod_security: [privileged]"),
    ("docker", {"extra_args": ["--network=host"]}, "allowed_pod_security: [privileged]"),
    ("docker", {"extra_args": ["--pid", "host"]}, "allowed_pod_security: [privileged]"),
    ("docker", {"extra_args": ["--security-opt", "seccomp=unconfined"]}, "allowed_pod_security: [privileged]"),
    ("docker", {"extra_args": ["--cap-add", "cap_sys_ptrace"]}, "allowed_capabilities: [SYS_PTRACE]"),
    ("docker", {"extra_args": ["-v", "/data:/in"]}, "allowed_host_paths: [/data]"),
    (
        "docker",
        {"extra_args": ["--mount", "type=volume,source=v,target=/in,volume-opt=o=bind,volume-opt=device=/data"]},
        "allowed_host_paths: [/data]",
    ),
    ("compose", {"services": {"digits": {"privileged": True}}}, "allowed_pod_security: [privileged]"),
    ("compose", {"services": {"digits": {"network_mode": "host"}}}, "allowed_pod_security: [privileged]"),
    ("compose", {"services": {"digits": {"security_opt": ["label:disable"]}}}, "allowed_pod_security: [privileged]"),
    ("compose", {"services": {"digits": {"cap_add": ["SYS_PTRACE"]}}}, "allowed_capabilities: [SYS_PTRACE]"),
    (
        "compose",
        {"services": {"x": {"image": "a:1", "volumes": [BIND]}}},
        "allowed_host_paths: [/data]",
    ),
    ("compose", {"volumes": {"v": {"driver_opts": {"device": "/data", "o": "bind"}}}}, "allowed_host_paths: [/data]"),
    ("compose", {"secrets": {"s": {"file": "/data/x"}}}, "allowed_host_paths: [/data]"),
    (
        "kubernetes",
        added(f"{POD}/volumes/-", {"name": "c", "persistentVolumeClaim": {"claimName": "c"}}),
        "allowed_claims: [c, data]",
    ),
]


@pytest.mark.parametrize(("target", "patch", "allowed"), HOST, ids=str)
def test_what_reaches_beyond_the_container_needs_a_policys_list(
    tmp_path: Path, target: str, patch: Any, allowed: str
) -> None:
    """Without a policy it is free; under one it needs its list, and another list is none."""
    policy = tmp_path / "trainlaunch-policy.yaml"
    assert not said(tmp_path, target, patch)
    name = allowed.partition(":")[0]
    other = {"allowed_pod_security": "[baseline]", "allowed_capabilities": "[KILL]", "allowed_host_paths": "[/other]"}
    policy.write_text(f"{name}: {other.get(name, '[data]')}\n")
    assert said(tmp_path, target, patch)
    policy.write_text(f"{allowed}\n")
    assert not said(tmp_path, target, patch)


SERVICE = {"image": "a:1", "mem_limit": "1g"}
ALL_GPUS = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
GPU_DOORS: list[tuple[str, Any]] = [
    ("docker", {"extra_args": ["--device", "nvidia.com/gpu=all"]}),
    ("docker", {"extra_args": ["--device=/dev/nvidia0:/dev/nvidia0:rwm"]}),
    ("docker", {"extra_args": ["-e", "NVIDIA_VISIBLE_DEVICES=all"]}),
    ("docker", {"extra_args": ["--env=NVIDIA_VISIBLE_DEVICES=0"]}),
    ("compose", {"services": {"digits": {"environment": {"NVIDIA_VISIBLE_DEVICES": "all"}}}}),
    (
        "compose",
        {"services": {"x": {**SERVICE, "environment": {"NVIDIA_VISIBLE_DEVICES": "0"}}}},
    ),
    ("compose", {"services": {"x": {**SERVICE, "devices": ["nvidia.com/gpu=0"]}}}),
    ("kubernetes", added(f"{TRAIN}/env/-", ALL_GPUS)),
    ("kubernetes", added(f"{TRAIN}/resources/claims", [{"name": "gpu"}])),
    (
        "kubernetes",
        added(f"{POD}/containers/-", {**SIDECAR, "env": [ALL_GPUS]}),
    ),
]


@pytest.mark.parametrize(("target", "patch"), GPU_DOORS, ids=str)
def test_gpus_by_every_door_count_against_a_ceiling(tmp_path: Path, target: str, patch: Any) -> None:
    """And are free without one."""
    assert not said(tmp_path, target, patch)
    (tmp_path / "trainlaunch-policy.yaml").write_text("max: {gpus: 1}\n")
    assert said(tmp_path, target, patch)


def test_the_jobs_own_variable_is_a_door_too(tmp_path: Path) -> None:
    """NVIDIA's runtime reads it from whoever states it; none asks for nothing."""
    (tmp_path / "trainlaunch-policy.yaml").write_text("max: {gpus: 1}\n")
    with pytest.raises(JobFileRejected) as caught:
        plan_with(tmp_path, env={"NVIDIA_VISIBLE_DEVICES": "all"})
    assert caught.value.diagnostics[0].field == "env.NVIDIA_VISIBLE_DEVICES"
    assert plan_with(tmp_path, env={"NVIDIA_VISIBLE_DEVICES": "none"})


def test_a_claim_gives_a_gpu(tmp_path: Path) -> None:
    """Dynamic resource allocation has no field of the job file; a patch asks for it."""
    patch = [
        {"op": "add", "path": f"{POD}/resourceClaims", "value": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]},
        {"op": "add", "path": f"{TRAIN}/resources/claims", "value": [{"name": "gpu"}]},
    ]
    assert not said(tmp_path, "kubernetes", patch)


@pytest.mark.parametrize("kind", KINDS)
def test_a_patch_says_which_kinds_it_is_for(tmp_path: Path, kind: str) -> None:
    """A policy gives one to jobs of every kind, and each takes its own."""
    path = {
        "pod": "/spec",
        "job": POD,
        "jobset": f"/spec/replicatedJobs/0/template{POD}",
        "trainjob": f"/spec/template/spec/replicatedJobs/0/template{POD}",
        "pytorchjob": "/spec/pytorchReplicaSpecs/Master/template/spec",
    }
    value = [{"ip": "10.0.0.1", "hostnames": ["data"]}]
    patch = [
        {"op": "add", "path": f"{each}/hostAliases", "value": value, "kinds": [word]}
        | ({"kind": "TrainingRuntime"} if word == "trainjob" else {})
        for word, each in path.items()
    ]
    plan = patched_plan(tmp_path, "kubernetes", patch, kubernetes={"kind": kind})
    assert "10.0.0.1" in verified(plan, render(plan))


def test_requests_and_limits_are_named_as_fields(tmp_path: Path) -> None:
    """Not as a value of ours."""
    (message,) = said(tmp_path, "kubernetes", added(f"{TRAIN}/resources/requests/memory", "1Gi", "replace"))
    assert message.endswith("changes requests or limits, which a rendered file keeps alike")


DEFINITIONS = json.loads(
    next(
        Path(kubernetes_validate.__file__).parent.glob("kubernetes-json-schema/v1.36*-local/_definitions.json")
    ).read_text()
)["$defs"]
VALUES = {"string": "x", "integer": 1, "boolean": True, "number": 1}


def example(schema: dict[str, Any], depth: int = 3) -> Any:
    """Return a value of a definition's property, with all its required and first optional fields."""
    if "$ref" in schema:
        return example(DEFINITIONS[schema["$ref"].rpartition("/")[2]], depth)
    kind = schema.get("type")
    kind = next((each for each in kind if each != "null"), None) if isinstance(kind, list) else kind
    if kind == "array":
        return [example(schema.get("items", {}), depth - 1)] if depth else []
    if kind == "object" or "properties" in schema:
        named = schema.get("properties", {})
        return {name: example(each, depth - 1) for name, each in list(named.items())[:4]} if depth else {}
    return VALUES.get(str(kind), "x")


def fields_of(name: str) -> Iterator[tuple[str, Any]]:
    """Yield each property of a Kubernetes definition with a value of its type."""
    definition = next(each for key, each in DEFINITIONS.items() if key.endswith(name))
    for key, schema in definition["properties"].items():
        yield key, example(schema)
        if example(schema) is True:
            yield key, False


PLACES = {
    "io.k8s.api.core.v1.PodSpec": POD,
    "io.k8s.api.core.v1.Container": TRAIN,
    "io.k8s.api.core.v1.PodSecurityContext": f"{POD}/securityContext",
    "io.k8s.api.core.v1.SecurityContext": f"{TRAIN}/securityContext",
    "io.k8s.api.core.v1.ResourceRequirements": f"{TRAIN}/resources",
    "io.k8s.api.batch.v1.JobSpec": "/spec",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": "/metadata",
    "io.k8s.api.batch.v1.Job": "",
    "io.k8s.api.core.v1.PodTemplateSpec": "/spec/template",
    "io.k8s.api.core.v1.Volume": f"{POD}/volumes/0",
    "io.k8s.api.core.v1.VolumeMount": f"{TRAIN}/volumeMounts/0",
}
# What each reading has beside fields: what a patch may add to them is the patch's own.
ADDABLE = {"rest", "env", "mounts", "labels", "groups"}


@pytest.mark.parametrize("name", PLACES)
def test_every_field_of_the_official_schema_is_refused_or_changes_nothing_of_ours(tmp_path: Path, name: str) -> None:
    """Accepted: the text read back says what the plan says, and its pod passes restricted. Of four fields one."""
    assert changed_by(tmp_path, name, list(fields_of(name))[::4]) == {}


@pytest.mark.long
@pytest.mark.parametrize("name", PLACES)
def test_no_field_at_all_changes_anything_of_ours(tmp_path: Path, name: str) -> None:
    """Not one of four."""
    assert changed_by(tmp_path, name, fields_of(name)) == {}


def changed_by(folder: Path, name: str, fields: Iterable[tuple[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """Return by field and value what a patch of it would change of ours, or what its refusal doesn't say."""
    wrong = {}
    for key, value in fields:
        try:
            plan, text = taken(folder, "kubernetes", added(f"{PLACES[name]}/{key}", value))
        except JobFileRejected as rejected:
            found = badly_said(rejected.diagnostics)
        else:
            found = changes_of_ours(plan, text, key)
        if found:
            wrong[key, str(value)] = found
    return wrong


def changes_of_ours(plan: LaunchPlan, text: str, key: str) -> list[str]:
    """Return what a text with one more key says otherwise than the plan, and what restricted has against its pod."""
    before, after = parse_rendering(plan, unpatched(plan, base=None), base=None), parse_rendering(plan, text, base=None)
    found = [name for name in before.keys() | after.keys() if name not in ADDABLE and before[name] != after[name]]
    differ = [name for name in after["rest"] if after["rest"][name] != before["rest"].get(name)]
    (document,) = documents_of(text)
    pod = document["spec"]["template"]["spec"]
    return [*found, *(name for name in differ if key not in name), *map(str, violations(pod, "restricted"))]


COMPOSE = json.loads((ROOT / "tests" / "schemas" / "compose-spec.json").read_text())["definitions"]["service"][
    "properties"
]
SAMPLES: list[Any] = ["x", 1, True, ["x"], [{"source": "x", "target": "/x"}], {"x": "y"}]


def taken_with_another_meaning(folder: Path, pairs: Iterable[tuple[str, Any]]) -> list[tuple[str, Any, str]]:
    """Return the keys of the job's service that a patch may add although the text then says another thing of ours."""
    wrong = []
    for key, value in pairs:
        try:
            plan, text = taken(folder, "compose", {"services": {"digits": {key: value}}})
        except JobFileRejected as rejected:
            wrong += [(key, value, each) for each in badly_said(rejected.diagnostics)]
            continue
        before, after = (parse_rendering(plan, each, base=None) for each in (unpatched(plan, base=None), text))
        fields = ("shm_size", "process", "memory", "cpus", "health", "image", "user")
        wrong += [(key, value, field) for field in fields if before[field] != after[field]]
    return wrong


def test_every_key_of_a_compose_service_is_refused_or_changes_nothing_of_ours(tmp_path: Path) -> None:
    """Each with one of the shapes that a value can have."""
    assert taken_with_another_meaning(tmp_path, diagonals(6, COMPOSE, SAMPLES)) == []


@pytest.mark.long
def test_no_shape_of_a_value_of_a_compose_service_changes_anything_of_ours(tmp_path: Path) -> None:
    """The whole product."""
    assert taken_with_another_meaning(tmp_path, product(COMPOSE, SAMPLES)) == []


def test_the_lists_name_what_the_schemas_have() -> None:
    """A misspelt name on a list would allow nothing."""
    from trainlaunch.verify import patchable as keys

    for allowed, names in (
        (keys.POD, {key for key, _ in fields_of("io.k8s.api.core.v1.PodSpec")}),
        (keys.CONTAINER, {key for key, _ in fields_of("io.k8s.api.core.v1.Container")}),
        (keys.RESOURCES, {key for key, _ in fields_of("io.k8s.api.core.v1.ResourceRequirements")}),
        (keys.SERVICE, set(COMPOSE)),
        (keys.NEVER_IN_SERVICES, set(COMPOSE)),
    ):
        assert allowed <= names
