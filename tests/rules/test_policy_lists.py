"""A policy's allow-lists, required fields and severities: errors with both values and both places."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.diagnostics import Severity
from trainlaunch.errors import JobFileRejected
from trainlaunch.rules import RETIRED, check_plan, plan_rules

from tests.jobs import plan_under

POD: dict[str, Any] = {"resources": {"cpus": 1, "memory": "1Gi"}}


def refusals(folder: Path, policy: dict[str, Any], *sets: str, **how: Any) -> list[str]:
    """Return code and message of each error, without folders."""
    (folder / ".git").mkdir(exist_ok=True)
    with pytest.raises(JobFileRejected) as caught:
        plan_under(folder, policy, *sets, **how)
    found = [each for each in caught.value.diagnostics if each.severity is Severity.ERROR]
    return [f"{each.code} {each.message}".replace(f"{folder}/", "") for each in found]


def allowed(folder: Path, policy: dict[str, Any], **how: Any) -> None:
    """Plan a job under a policy that lets it pass."""
    (folder / ".git").mkdir(exist_ok=True)
    check_plan(plan_under(folder, policy, **how))


CLUSTER = [
    ("allowed_namespaces", ["training"], {}, {"namespace": "training"}, "kubernetes.namespace is not set, which"),
    (
        "allowed_namespaces",
        ["training"],
        {"namespace": "prod"},
        {"namespace": "training"},
        "kubernetes.namespace is prod",
    ),
    ("allowed_queues", ["gpu"], {}, {"queue": "gpu"}, "kubernetes.queue is not set, which gives no queue"),
    ("allowed_queues", ["gpu"], {"queue": "fast"}, {"queue": "gpu"}, "kubernetes.queue is fast"),
    ("allowed_priority_classes", ["low"], {"priority_class": "high"}, {}, "kubernetes.priority_class is high"),
    ("allowed_service_accounts", ["trainer"], {}, {"service_account": "trainer"}, "which gives the account `default`"),
    ("allowed_service_accounts", ["default"], {"service_account": "admin"}, {}, "kubernetes.service_account is admin"),
    ("forbid_token", True, {"token": True}, {"token": False}, "kubernetes.token is true"),
    ("allowed_pod_security", ["restricted"], {"pod_security": "baseline"}, {}, "kubernetes.pod_security is baseline"),
    ("max", {}, {"pod_security": "privileged"}, {"pod_security": "baseline"}, "kubernetes.pod_security is privileged"),
]


@pytest.mark.parametrize(("name", "value", "bad", "good", "said"), CLUSTER, ids=lambda each: str(each)[:40])
def test_what_a_cluster_gives_is_listed(
    tmp_path: Path, name: str, value: Any, bad: dict[str, Any], good: dict[str, Any], said: str
) -> None:
    """An unstated namespace, queue or account is somebody else's choice; docker has none of them."""
    (only,) = refusals(tmp_path, {name: value}, target="kubernetes", **POD, kubernetes=bad)
    assert only.startswith("TL152 ")
    assert said in only
    assert re.search(r"\(trainlaunch-policy.yaml:[12]\)$", only)
    allowed(tmp_path, {name: value}, target="kubernetes", **POD, kubernetes=good)
    allowed(tmp_path, {name: value}, target="docker", **POD, kubernetes=bad)


def test_privileged_needs_every_policy_in_force(tmp_path: Path) -> None:
    """One that allows it, and none that doesn't."""
    allowed(
        tmp_path,
        {"allowed_pod_security": ["restricted", "privileged"]},
        target="kubernetes",
        **POD,
        kubernetes={"pod_security": "privileged"},
    )


@pytest.mark.parametrize(
    ("source", "passes"),
    [
        ("/data/set", True),
        ("/data", True),
        ("/database", False),
        ("/data/../etc", False),
        ("./src", True),
        ("../../elsewhere", False),
    ],
)
def test_binds_come_from_allowed_folders(tmp_path: Path, source: str, passes: bool) -> None:
    """Whole parts of a path; a relative entry is the policy's neighbour, a relative source the job's."""
    policy = {"allowed_host_paths": ["/data", "."]}
    mounts = [{"type": "bind", "source": source, "target": "/in"}]
    if passes:
        allowed(tmp_path, policy, mounts=mounts)
    else:
        (only,) = refusals(tmp_path, policy, mounts=mounts)
        assert only.startswith(f"TL152 mounts.0.source is {source}, a path of the host, and the policy allows /data, .")


def test_claims_are_listed(tmp_path: Path) -> None:
    """A claim is another team's data."""
    mounts = [{"type": "pvc", "source": "secrets", "target": "/in"}]
    (only,) = refusals(tmp_path, {"allowed_claims": ["imagenet"]}, target="kubernetes", **POD, mounts=mounts)
    assert "mounts.0.source is secrets, and the policy allows imagenet" in only
    allowed(tmp_path, {"allowed_claims": ["secrets"]}, target="kubernetes", **POD, mounts=mounts)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--log-driver", "none"], None),
        (["--network", "x", "--env", "A=b"], None),
        (["--log-opt", "max-size=1m"], "--log-opt is set"),
        (["--volume", "/data/x:/x"], "--volume is set"),
    ],
)
def test_extra_args_are_listed(tmp_path: Path, flags: list[str], said: str | None) -> None:
    """By their long name, however they are spelled."""
    policy = {"allowed_extra_args": ["--log-driver", "--net", "-e"]}
    patches = {"docker": {"extra_args": flags}}
    if said is None:
        allowed(tmp_path, policy, patches=patches)
    else:
        assert said in refusals(tmp_path, policy, patches=patches)[0]


@pytest.mark.parametrize(
    "flags",
    [
        ["-v", "/etc:/x"],
        ["--volume=/etc:/x:ro"],
        ["--mount", "type=bind,source=/etc,target=/x"],
        ["--mount", "type=bind,src=/data/../etc,dst=/x"],
    ],
    ids=str,
)
def test_flags_take_nothing_from_elsewhere(tmp_path: Path, flags: list[str]) -> None:
    """A mount by a flag is a mount."""
    policy = {"allowed_host_paths": ["/data"]}
    (only,) = refusals(tmp_path, policy, patches={"docker": {"extra_args": flags}})
    assert "a path of the host, and the policy allows /data" in only


@pytest.mark.parametrize(
    ("patch", "passes"),
    [
        ({"op": "add", "path": "/spec/template/spec/dnsConfig", "value": {}}, True),
        ({"op": "add", "path": "/spec/template/spec/dnsConfig/options", "value": []}, True),
        ({"op": "add", "path": "/spec/template/spec/dnsPolicy", "value": "Default"}, False),
        ({"op": "test", "path": "/spec/template/spec/dnsPolicy", "value": "Default"}, True),
        ({"op": "add", "path": "/metadata/annotations/x~1y", "value": "z"}, True),
        ({"op": "add", "path": "", "value": {}}, False),
    ],
    ids=str,
)
def test_patch_paths_are_listed(tmp_path: Path, patch: dict[str, Any], passes: bool) -> None:
    """And all below them; `*` is any one key."""
    policy = {"allowed_patch_paths": ["/spec/template/spec/dnsConfig", "/metadata/*/x~1y"]}
    how: dict[str, Any] = {"target": "kubernetes", **POD, "patches": {"kubernetes": [patch]}}
    if passes:
        allowed(tmp_path, policy, **how)
    else:
        assert refusals(tmp_path, policy, **how)[0].startswith("TL152 patches.kubernetes.0 changes ")


def test_leaves_of_a_compose_patch_are_listed(tmp_path: Path) -> None:
    """Each value of a merge patch is a path."""
    policy = {"allowed_patch_paths": ["/services/*/logging"]}
    service = {"logging": {"driver": "none"}, "tty": True}
    (only,) = refusals(tmp_path, policy, target="compose", patches={"compose": {"services": {"digits": service}}})
    assert "patches.compose.services.digits.tty changes /services/digits/tty" in only


@pytest.mark.parametrize(
    ("name", "sets"), [("active_deadline", "active_deadline=1h"), ("resources.cpus", "resources.cpus=2")]
)
def test_required_fields(tmp_path: Path, name: str, sets: str) -> None:
    """Stated by anybody: the job, --set, a default."""
    (only,) = refusals(tmp_path, {"required": [name]})
    assert only == f"TL153 {name} is not set, and the policy requires it (trainlaunch-policy.yaml:2)"
    check_plan(plan_under(tmp_path, {"required": [name]}, sets))
    field, _, value = sets.partition("=")
    outer, _, inner = field.rpartition(".")
    allowed(tmp_path, {"required": [name], "defaults": {outer: {inner: value}} if outer else {inner: value}})


def test_a_required_field_must_be_one(tmp_path: Path) -> None:
    """A misspelt one would never be missing."""
    (only,) = refusals(tmp_path, {"required": ["resources.cpu"]})
    assert only == "TL107 required.0 is resources.cpu, which is no field of a job file"


@pytest.mark.parametrize(
    ("ceiling", "good", "said"),
    [
        ({"cpus": 4}, {"resources": {"cpus": 4}}, "resources.cpus is not set, and the policy's max.cpus is 4"),
        ({"active_deadline": "2h"}, {"active_deadline": "90m"}, "active_deadline is not set, and the policy's max"),
    ],
)
def test_ceilings_of_what_must_be_stated(
    tmp_path: Path, ceiling: dict[str, Any], good: dict[str, Any], said: str
) -> None:
    """Unstated is unlimited."""
    assert said in refusals(tmp_path, {"max": ceiling})[0]
    allowed(tmp_path, {"max": ceiling}, **good)
    above = {"resources": {"cpus": 5}, "active_deadline": "3h"}
    assert "is above the policy's max." in refusals(tmp_path, {"max": ceiling}, **above)[0]


def test_severities_are_in_effect(tmp_path: Path) -> None:
    """A remark becomes an error, or is not said."""
    fields: dict[str, Any] = {"image": "trainer:latest"}
    plain = check_plan(plan_under(tmp_path, {}, **fields))
    (remark,) = [each for each in plain if "latest" in each.message]
    assert remark.severity is not Severity.ERROR
    (only,) = refusals(tmp_path, {"severities": {remark.code: "error"}}, **fields)
    assert only.startswith(remark.code)
    silent = check_plan(plan_under(tmp_path, {"severities": {remark.code: "off"}}, **fields))
    assert remark.code not in {each.code for each in silent}


@pytest.mark.parametrize(("code", "said"), [("TL201", "is an error of every plan"), ("TL199", "which no rule has")])
def test_a_severity_that_can_not_be_is_an_error(tmp_path: Path, code: str, said: str) -> None:
    """At its line of the policy."""
    assert said in refusals(tmp_path, {"severities": {code: "off"}})[0]


def test_a_severity_of_a_rule_that_is_gone_is_none(tmp_path: Path) -> None:
    """A policy that once silenced it goes on to hold."""
    allowed(tmp_path, {"severities": dict.fromkeys(RETIRED, "off")})
    assert not RETIRED & {each.code for each in plan_rules()}
