"""Manifests of every kind: what the API server takes, what each pod of them says, names at their limits."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.container.container import container_of, rendezvous_endpoint
from trainlaunch.container.kubernetes import kubernetes_name
from trainlaunch.container.preflight import health_text, plan_variables
from trainlaunch.errors import JobFileRejected, RenderingDisagrees
from trainlaunch.job.fields.kubernetes import POD_KEYS
from trainlaunch.job.reserved import PLAN_VARIABLE
from trainlaunch.kinds import KINDS
from trainlaunch.plan.instrumentation import latest_stall
from trainlaunch.render import render
from trainlaunch.rules import check_plan, plan_job
from trainlaunch.templating.quoting import kubernetes_dollars
from trainlaunch.verify import verified

from tests.jobs import job_with, plan_with
from tests.render.crds import VERSIONS, pod_templates, refusal, validate
from tests.render.jobs import FOLDER, GOLDENS
from tests.render.kinds import CASES, FILES, documents, kind_plan, templates
from tests.render.pod_security import LEVELS, containers_of, violations
from tests.render.readers import kubectl_json
from tests.sampling import diagonals

CLUSTER = FOLDER / "jobs" / "cluster.yaml"
MINIMAL = FOLDER / "jobs" / "minimal.yaml"
LIMITS = {"cpus": 2, "memory": "4Gi"}


@pytest.mark.parametrize(("kind", "nodes"), CASES)
def test_each_kind_is_its_golden_file(kind: str, nodes: int, golden: Callable[[Path, str], None]) -> None:
    """The least job, alone and on three nodes, gives exactly the committed text."""
    plan = kind_plan(MINIMAL, kind, nodes)
    golden(GOLDENS / "kinds" / f"{kind}-{nodes}.yaml", verified(plan, render(plan)))


def test_the_platform_fields_are_their_golden_file(golden: Callable[[Path, str], None]) -> None:
    """All fields of `kubernetes` at once."""
    plan = kind_plan(CLUSTER, "job", 3)
    golden(GOLDENS / "cluster" / "kubernetes.yaml", verified(plan, render(plan)))


def refused_by_the_api(pairs: Iterable[tuple[Path, tuple[str, int]]]) -> list[str]:
    """Return what the API server, or the level restricted, has against jobs as kinds."""
    wrong = []
    for path, (kind, nodes) in pairs:
        plan = kind_plan(path, kind, nodes)
        pods = [pod["spec"] for pod in templates(plan)]
        found = [why for document in documents(plan) if (why := refusal(document, VERSIONS[-1]))]
        found += [why for pod in pods for why in violations(pod, "restricted")]
        if found or not all("memory" in each["resources"]["limits"] for pod in pods for each in containers_of(pod)):
            wrong.append(f"{path} {kind} {nodes}: {found or 'no memory limit'}")
        assert pods
    return wrong


def test_every_job_fits_the_api_strictly_and_passes_restricted() -> None:
    """Every object and every pod template, with unknown fields refused; every container of every pod."""
    assert refused_by_the_api(diagonals(9, FILES, CASES)) == []


@pytest.mark.long
def test_every_job_fits_the_api_as_every_kind() -> None:
    """The whole product."""
    assert refused_by_the_api(product(FILES, CASES)) == []


# Versions differ in what a Job and a Pod may say; the other kinds have their pod of the same template.
VERSIONS_OF_KINDS = [
    pytest.param(*case, version, marks=() if case == ("job", 3) or version == VERSIONS[0] else pytest.mark.long)
    for case in CASES
    for version in VERSIONS
]


@pytest.mark.parametrize(("kind", "nodes", "version"), VERSIONS_OF_KINDS)
def test_each_version_of_the_api_takes_each_kind(kind: str, nodes: int, version: str) -> None:
    """With every platform field stated."""
    for document in documents(kind_plan(CLUSTER, kind, nodes)):
        validate(document, version)


@pytest.mark.parametrize(("kind", "nodes"), CASES)
def test_kubectl_reads_what_was_meant(kind: str, nodes: int) -> None:
    """Kubernetes' own YAML reader sees the same objects as PyYAML, also `y` and `no`, which are strings."""
    plan = kind_plan(CLUSTER, kind, nodes)
    for document, text in zip(documents(plan), re.split(r"(?m)^---\n", render(plan)), strict=True):
        seen = kubectl_json(text)
        seen["metadata"]["labels"].pop("read-by")
        assert seen == document


@pytest.mark.parametrize(("case", "pod_key"), diagonals(3, CASES, list(POD_KEYS.items())))
def test_a_value_stands_as_it_is_in_every_pod(case: tuple[str, int], pod_key: tuple[str, str]) -> None:
    """The fields whose value is one key of the pod's spec; verify refuses a text without it."""
    (kind, nodes), (key, field) = case, pod_key
    unstated = kind_plan(MINIMAL, kind, nodes)
    assert not any(key in pod["spec"] for pod in templates(unstated))
    plan = kind_plan(MINIMAL, kind, nodes, f"kubernetes.{field}=its-own.name")
    for document in documents(plan):
        validate(document, VERSIONS[-1])
    assert {pod["spec"][key] for pod in templates(plan)} == {"its-own.name"}
    with pytest.raises(RenderingDisagrees, match=key):
        verified(plan, re.sub(rf" *{key}: .*\n", "", render(plan)))


@pytest.mark.parametrize("field", POD_KEYS.values())
@pytest.mark.parametrize("name", ["Upper", "under_score", "-a", "a" * 254, '""'])
def test_what_names_an_object_of_the_cluster_is_a_name(field: str, name: str) -> None:
    """The API server would refuse it after everything else is made."""
    with pytest.raises(JobFileRejected) as refused:
        kind_plan(MINIMAL, "job", 1, f"kubernetes.{field}={name}")
    assert [each.field for each in refused.value.diagnostics] == [f"kubernetes.{field}"]


@pytest.mark.parametrize(("kind", "nodes"), CASES)
def test_all_pods_of_a_job_are_the_same(kind: str, nodes: int) -> None:
    """Each has /dev/shm with its size, the wrapper, the health check and the memory limit of the plan."""
    plan = kind_plan(CLUSTER, kind, nodes)
    pods = templates(plan)
    assert all(pod == pods[0] for pod in pods)
    assert len(pods) == (2 if (kind, nodes) == ("pytorchjob", 3) else 1)
    spec = pods[0]["spec"]
    (container,) = spec["containers"]
    assert {"name": "shm", "mountPath": "/dev/shm"} in container["volumeMounts"]
    (shm,) = [each["emptyDir"] for each in spec["volumes"] if each["name"] == "shm"]
    assert shm == {"medium": "Memory", "sizeLimit": f"{plan.shm.size.value // 1024**2}Mi"}
    assert container["command"][:2] == ["/bin/sh", "-c"]
    assert container["resources"]["limits"]["memory"] == "65536Mi"
    assert spec["restartPolicy"] == "Never"


@pytest.mark.parametrize(
    ("kind", "host"),
    [
        ("job", "{0}-0.{0}"),
        ("jobset", "{0}-node-0-0.{0}"),
        ("trainjob", "{0}-node-0-0.{0}"),
        ("pytorchjob", "{0}-master-0"),
    ],
)
def test_nodes_meet_at_the_first_one(kind: str, host: str) -> None:
    """Its name stands in torchrun's own variable, the argv is the same as on one node but for the endpoint."""
    plan = kind_plan(CLUSTER, kind, 3)
    endpoint = f"{host.format(kubernetes_name(plan))}:29501"
    assert rendezvous_endpoint(plan) == endpoint
    for pod in templates(plan):
        (container,) = pod["spec"]["containers"]
        assert {"name": "PET_RDZV_ENDPOINT", "value": endpoint} in container["env"]
        assert container["args"][0:2] == ["torchrun", "--nnodes=3"]
        assert not any(each.startswith("--rdzv-endpoint") for each in container["args"])
    alone = kind_plan(CLUSTER, kind, 1)
    assert rendezvous_endpoint(alone) is None
    assert "PET_RDZV_ENDPOINT" not in dict(container_of(alone).env)


def test_the_jobs_own_rendezvous_wins(tmp_path: Path) -> None:
    """A job that sets torchrun's variable meets elsewhere."""
    env = {"PET_RDZV_ENDPOINT": "etcd.example.com:2379"}
    plan = plan_with(tmp_path, "kubernetes", resources=LIMITS, torchrun={"nnodes": 2}, env=env)
    (pod,) = templates(plan)
    values = {each["name"]: each["value"] for each in pod["spec"]["containers"][0]["env"]}
    assert values["PET_RDZV_ENDPOINT"] == "etcd.example.com:2379"


def test_an_indexed_job_has_a_service_for_its_names() -> None:
    """It comes first, selects the Job's pods, and names those that are not ready too."""
    plan = kind_plan(MINIMAL, "job", 3)
    service, job = documents(plan)
    name = job["metadata"]["name"]
    assert (service["kind"], service["metadata"]["name"]) == ("Service", name)
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": name}
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 3)
    assert spec["backoffLimit"] == 0
    assert spec["template"]["spec"]["subdomain"] == name
    assert [each["action"] for each in spec["podFailurePolicy"]["rules"]] == ["FailJob", "FailJob"]


def test_a_jobset_starts_all_pods_again_but_never_after_78(tmp_path: Path) -> None:
    """A lost node restarts the set without counting; wrong files and a deadline end it."""
    plan = kind_plan(FOLDER / "jobs" / "full.yaml", "jobset", 3)
    (job_set,) = documents(plan)
    policy = job_set["spec"]["failurePolicy"]
    assert policy["maxRestarts"] == 2
    assert [each["action"] for each in policy["rules"]] == ["RestartJobSetAndIgnoreMaxRestarts", "FailJobSet"]
    child = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (child["backoffLimit"], child["completionMode"], child["completions"]) == (0, "Indexed", 3)
    first = child["podFailurePolicy"]["rules"][0]
    assert (first["action"], first["onExitCodes"]["values"]) == ("FailJob", [78, 125, 126, 127])
    pattern = policy["rules"][0]["onJobFailureMessagePatterns"][0]
    assert re.search(pattern, "Pod ml/a has condition DisruptionTarget matching FailJob rule at index 1")
    assert not re.search(pattern, "Container train for pod ml/a failed with exit code 78 matching FailJob rule")


def test_a_trainjob_names_its_own_runtime() -> None:
    """A TrainJob has no runtime inline: a namespaced one of the same name stands before it."""
    runtime, job = documents(kind_plan(CLUSTER, "trainjob", 3))
    reference = job["spec"]["runtimeRef"]
    assert (runtime["kind"], reference["kind"]) == ("TrainingRuntime", "TrainingRuntime")
    assert reference["name"] == runtime["metadata"]["name"] == job["metadata"]["name"]
    assert runtime["metadata"]["namespace"] == job["metadata"]["namespace"] == "training"
    assert runtime["spec"]["mlPolicy"] == {"numNodes": 3}
    assert job["spec"]["activeDeadlineSeconds"] == 12 * 3600


@pytest.mark.parametrize(("kind", "nodes"), CASES)
def test_only_the_object_that_runs_the_job_is_queued(kind: str, nodes: int) -> None:
    """It carries Kueue's label; pods and helpers don't, or the queue would count them too.

    Kueue's webhook suspends it: a manifest that said so would stop the running job when it is applied again.
    """
    plan = kind_plan(CLUSTER, kind, nodes)
    label = "kueue.x-k8s.io/queue-name"
    *others, main = documents(plan)
    if kind == "pod":
        assert label not in main["metadata"]["labels"]
        return
    assert main["metadata"]["labels"][label] == "research"
    assert "suspend:" not in render(plan)
    assert render(plan).count(label) == 1
    assert all(label not in each["metadata"]["labels"] for each in others)


def test_readiness_only_records_where_something_acts_on_it(tmp_path: Path) -> None:
    """A queue and peers would take a pod that is not ready for a lost one, so the check then always passes."""
    for expected, fields in (
        (False, {}),
        (True, {"torchrun": {"nnodes": 2}}),
        (True, {"kubernetes": {"queue": "a"}}),
        (True, {"kubernetes": {"kind": "jobset"}}),
    ):
        plan = plan_with(tmp_path, "kubernetes", resources=LIMITS, **fields)
        probe = templates(plan)[0]["spec"]["containers"][0]["readinessProbe"]["exec"]["command"]
        assert (" records=yes" in plan_variables(plan)[PLAN_VARIABLE]) is expected
        assert probe == ["/bin/sh", "-c", kubernetes_dollars(health_text())]


@pytest.mark.parametrize(
    ("check", "latest"),
    [({}, 630), ({"interval": "7s"}, 606), ({"interval": "1s"}, 603), ({"interval": "7s", "retries": 20}, 620)],
)
def test_a_kubelet_stops_a_stalled_job_within_one_look(tmp_path: Path, check: dict[str, Any], latest: int) -> None:
    """As many checks as may fail fit into one interval, at a second each at least; `plan` tells the same moment."""
    health = {"stall_after": "10m", "on_unhealthy": "stop", **check}
    plan = plan_with(tmp_path, "kubernetes", resources=LIMITS, healthcheck=health)
    probe = templates(plan)[0]["spec"]["containers"][0]["livenessProbe"]
    assert 600 + probe["periodSeconds"] * probe["failureThreshold"] == latest_stall(plan.job) == latest


@pytest.mark.parametrize("shell", ["dash", "busybox sh", "bash --posix"])
def test_a_check_that_only_records_never_fails(tmp_path: Path, shell: str) -> None:
    """What it prints stays, and its exit code is 0, in each shell that an image may have; as liveness it does fail."""
    plan = plan_with(tmp_path, "kubernetes", resources=LIMITS, kubernetes={"queue": "a"})
    text = health_text().replace("/dev/shm", str(tmp_path / "gone"))
    for name, code in ((), 0), (("liveness",), 1):
        argv = [*shell.split(), "-c", text, *name]
        done = subprocess.run(argv, env=os.environ | plan_variables(plan), capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout[:10]) == (code, "unhealthy:")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [20, 63])
@pytest.mark.parametrize("fixed", [True, False])
def test_names_made_from_a_name_still_fit(tmp_path: Path, kind: str, length: int, fixed: bool) -> None:
    """Pods, their hosts and the labels of both have at most 63 characters, with the indices of 1000 nodes."""
    nodes = 1 if kind == "pod" else 1000
    job = job_with(
        tmp_path,
        "kubernetes",
        name="a" * length,
        resources=LIMITS,
        kubernetes={"kind": kind},
        torchrun={"nnodes": nodes},
    )
    plan = plan_job(job, name="b" * length if fixed else None)
    name = documents(plan)[-1]["metadata"]["name"]
    made = {
        "pod": name,
        "job": f"{name}-{nodes - 1}",
        "pytorchjob": f"{name}-worker-{nodes - 2}",
    }.get(kind, f"{name}-node-0-{nodes - 1}-abcde")
    assert len(made) <= 63
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", made)
    assert len(made) == 63 or length == 20
    assert any(each.code == "TL402" for each in check_plan(plan)) is (len(plan.name) == 63 and kind != "pod")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("user", [None, "0", "0:0", "1234", "1234:5678"])
def test_a_pod_passes_the_level_that_it_names(tmp_path: Path, level: str, user: str | None) -> None:
    """Under the laxer levels the image's user stays where the job states none, and root is allowed."""
    fields = {"resources": LIMITS, "kubernetes": {"pod_security": level}}
    if level == "restricted" and user in {"0", "0:0"}:
        with pytest.raises(JobFileRejected, match="TL401"):
            plan_with(tmp_path, "kubernetes", user=user, **fields)
        return
    spec = templates(plan_with(tmp_path, "kubernetes", user=user, **fields))[0]["spec"]
    assert violations(spec, level) == []
    context = spec.get("securityContext", {})
    stated = None if user is None and level != "restricted" else int((user or "1000").partition(":")[0])
    assert context.get("runAsUser") == stated
    assert context.get("fsGroup") == (1000 if stated else None)
    assert (violations(spec, "restricted") == []) is (level == "restricted")


def test_a_hosts_network_needs_the_level_that_allows_it(tmp_path: Path) -> None:
    """With it the cluster's names are still looked up, and a node is reached by its address."""
    fields = {"host_network": True, "pod_security": "privileged"}
    plan = plan_with(tmp_path, "kubernetes", resources=LIMITS, torchrun={"nnodes": 2}, kubernetes=fields)
    spec = templates(plan)[0]["spec"]
    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    address = {"name": "PET_LOCAL_ADDR", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    assert address in spec["containers"][0]["env"]
    assert violations(spec, "baseline") == ["hostNetwork is true"]
    own = plan_with(
        tmp_path,
        "kubernetes",
        resources=LIMITS,
        torchrun={"nnodes": 2},
        kubernetes=fields,
        env={"PET_LOCAL_ADDR": "10.0.0.1"},
    )
    assert "status.podIP" not in verified(own, render(own))
    validate(documents(plan)[1], VERSIONS[-1])


RESUMES = {
    "mounts": [{"type": "pvc", "source": "saved", "target": "/saved"}],
    "checkpoint_dir": "/saved",
    "restart": {"max_attempts": 3},
    "resources": LIMITS,
}


@pytest.mark.parametrize("kind", ["pod", "job", "jobset", "trainjob"])
def test_an_attempt_learns_its_number_where_the_pods_have_it(tmp_path: Path, kind: str) -> None:
    """The JobSet controller labels its pods with it; a Job's says nothing, and nothing is invented."""
    plan = plan_with(tmp_path, "kubernetes", kubernetes={"kind": kind}, **RESUMES)
    env = templates(plan)[0]["spec"]["containers"][0].get("env", [])
    found = [each["valueFrom"] for each in env if each["name"] == "TRAINLAUNCH_RESTARTS"]
    label = {"fieldRef": {"fieldPath": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"}}
    assert found == [label] * (kind in {"jobset", "trainjob"})
    text = verified(plan, render(plan))
    assert ("restarts=yes" in text) is bool(found)
    for document in documents(plan):
        validate(document, VERSIONS[-1])
    if found:
        with pytest.raises(RenderingDisagrees, match="TRAINLAUNCH_RESTARTS"):
            verified(plan, text.replace("restart-attempt", "job-index"))


@pytest.mark.parametrize(
    "fields",
    [
        {"restart": None},
        {"checkpoint_dir": None},
        {"env": {"TRAINLAUNCH_ATTEMPT": "mine"}},
        {"env": {"TRAINLAUNCH_RESTARTS": "9"}},
    ],
)
def test_who_asks_for_no_number_gets_none(tmp_path: Path, fields: dict[str, Any]) -> None:
    """One attempt, nothing to go on from, or a variable of the job's own: the text stays as it was."""
    stated = {key: value for key, value in {**RESUMES, **fields}.items() if value is not None}
    plan = plan_with(tmp_path, "kubernetes", kubernetes={"kind": "jobset"}, **stated)
    text = verified(plan, render(plan))
    assert "restart-attempt" not in text
    assert "restarts=yes" not in text


def test_no_pod_ever_asks_for_the_hosts_ipc() -> None:
    """The node's /dev/shm would be everybody's."""
    for kind, nodes in CASES:
        assert "hostIPC" not in render(kind_plan(CLUSTER, kind, nodes))


def test_cpus_can_be_requested_without_a_limit() -> None:
    """cpu_limit false leaves memory and devices limited."""
    resources = templates(kind_plan(CLUSTER, "job", 1))[0]["spec"]["containers"][0]["resources"]
    assert resources["requests"]["cpu"] == "16"
    assert resources["limits"] == {name: value for name, value in resources["requests"].items() if name != "cpu"}


@pytest.mark.parametrize(("kind", "nodes"), CASES)
def test_the_schemas_of_these_tests_refuse_what_they_do_not_know(kind: str, nodes: int) -> None:
    """One unknown field anywhere, in the object or in a pod, is refused."""
    plan = kind_plan(MINIMAL, kind, nodes)
    for of_pod in (True, False):
        changed = documents(plan)
        (_first_pod(changed) if of_pod else changed[-1]["spec"])["shmSize"] = "1Gi"
        assert [each["kind"] for each in changed if refusal(each, VERSIONS[-1])]


def _first_pod(objects: list[dict[str, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = next(each for document in objects for each in pod_templates(document))["spec"]
    return spec
