"""What the API server refuses is named at the line of the job file that it was spelled from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trainlaunch.container.api_fields import field_of
from trainlaunch.job.spec import JobSpec
from trainlaunch.policy import read_job
from trainlaunch.rules import plan_job
from trainlaunch.run.kubernetes.api_errors import ApiRefused
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.field_lookup import field_in_words, refusals
from trainlaunch.run.kubernetes.kubeconfig import Access
from trainlaunch.run.kubernetes.launch import documents_of

TEXT = """\
name: job
image: trainer:1
command: [python, train.py]
env: {A: b, C: d}
secrets: {TOKEN: {kubernetes: hub/token}}
mounts:
  - {type: pvc, source: data, target: /data}
  - {type: pvc, source: code, target: /code}
resources:
  cpus: 2
  memory: 4Gi
  gpus: 1
  extended: {rdma/hca: 1}
"""
ACCESS = Access("gpu", "https://gpu", "default", "config")
CONTAINER = "spec.template.spec.containers[0]"
QUOTA = (
    'pods "job-x" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=1, used: '
    "requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"
)


@pytest.fixture
def job(tmp_path: Path) -> JobSpec:
    """Return the job of TEXT on target kubernetes."""
    path = tmp_path / "job.yaml"
    path.write_text(TEXT)
    return read_job(path, target="kubernetes")


@pytest.fixture
def document(job: JobSpec) -> dict[str, Any]:
    """Return its Job object."""
    return documents_of(plan_job(job), "team")[0]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (f"{CONTAINER}.resources.limits[cpu]", "resources.cpus"),
        (f"{CONTAINER}.resources.requests[memory]", "resources.memory"),
        (f"{CONTAINER}.resources.limits[nvidia.com/gpu]", "resources.gpus"),
        (f"{CONTAINER}.resources.requests[rdma/hca]", "resources.extended.rdma/hca"),
        (f"{CONTAINER}.image", "image"),
        (f"{CONTAINER}.args[2]", "command"),
        (f"{CONTAINER}.readinessProbe.periodSeconds", "healthcheck"),
        ("spec.template.spec.volumes[1].persistentVolumeClaim.claimName", "mounts.0"),
        ("spec.template.spec.volumes[0].emptyDir.sizeLimit", "shm_size"),
        (f"{CONTAINER}.volumeMounts[2].mountPath", "mounts.1"),
        ("spec.template.spec.priorityClassName", "kubernetes.priority_class"),
        ("spec.activeDeadlineSeconds", "active_deadline"),
        ("metadata.labels", "labels"),
        ("spec.template.spec.preemptionPolicy", ""),
    ],
)
def test_an_api_field_has_one_field_of_the_job(job: JobSpec, document: dict[str, Any], path: str, field: str) -> None:
    """By its path, and by the names of the list items on it."""
    assert field_of(job, document, path) == field


def test_a_variable_is_told_by_its_name(job: JobSpec, document: dict[str, Any]) -> None:
    """Its index in the container differs from that in the job file."""
    names = [each["name"] for each in document["spec"]["template"]["spec"]["containers"][0]["env"]]
    for name, field in (("C", "env.C"), ("TOKEN", "secrets.TOKEN"), ("TRAINLAUNCH_PLAN", "env")):
        assert field_of(job, document, f"{CONTAINER}.env[{names.index(name)}].value") == field


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (QUOTA, "resources.gpus"),
        ("maximum memory usage per Container is 1Gi, but limit is 4Gi", "resources.memory"),
        ("0/3 nodes are available: 3 Insufficient cpu.", "resources.cpus"),
        ("0/3 nodes are available: 3 node(s) had untolerated taint {a: b}.", "kubernetes.tolerations"),
        ("pod has unbound immediate PersistentVolumeClaims", "mounts"),
        ("something else", ""),
    ],
)
def test_a_sentence_names_the_field_that_it_is_about(job: JobSpec, words: str, field: str) -> None:
    """Quotas, limit ranges and the scheduler have no causes, only words."""
    assert field_in_words(job, words) == field


def refusal(status: int, message: str, *causes: tuple[str, str]) -> ApiRefused:
    """Return a refusal as the API server sends it."""
    details = {"causes": [{"field": field, "message": says} for field, says in causes]}
    return ApiRefused(ACCESS, "create Job job", status, {"message": message, "reason": "Invalid", "details": details})


def test_one_mistake_in_requests_and_limits_is_said_once_at_its_line(job: JobSpec, document: dict[str, Any]) -> None:
    """Both are spelled from the same field."""
    says = 'Invalid value: "4Gi": must be less than 1Gi'
    refused = refusal(
        422,
        "Job is invalid",
        (f"{CONTAINER}.resources.requests[memory]", says),
        (f"{CONTAINER}.resources.limits[memory]", says),
        (f"{CONTAINER}.image", "Required value"),
    )
    memory, image = refusals(Cluster(ACCESS, "team"), job, document, refused)
    assert (memory.code, memory.field) == ("TL526", "resources.memory")
    assert memory.span is not None
    assert (memory.span.line, says in memory.message) == (11, True)
    assert image.span is not None
    assert image.span.line == 2


def test_a_quota_is_named_at_what_exceeds_it(job: JobSpec, document: dict[str, Any]) -> None:
    """A lone Pod meets it at once."""
    (found,) = refusals(Cluster(ACCESS, "team"), job, document, refusal(403, QUOTA))
    assert found.span is not None
    assert (found.code, found.field, found.span.line) == ("TL526", "resources.gpus", 12)


def test_a_missing_permission_is_no_mistake_of_the_job_file(job: JobSpec, document: dict[str, Any]) -> None:
    """The words of RBAC name service accounts, and mean the caller's."""
    words = (
        'jobs.batch is forbidden: User "system:serviceaccount:a:b" cannot create resource "jobs" in API group "batch"'
    )
    (found,) = refusals(Cluster(ACCESS, "team"), job, document, refusal(403, words))
    assert (found.code, found.span) == ("TL525", None)
    assert "kubectl auth can-i create jobs" in found.fix


def test_a_cause_without_a_path_says_no_half_sentence(job: JobSpec, document: dict[str, Any]) -> None:
    """An object that is too long has a cause, and neither a field of the API nor one of the job."""
    cause = {"reason": "FieldValueTooLong", "message": "Too long: may not be more than 1048576 bytes", "field": ""}
    answer = {"reason": "Invalid", "message": "it is invalid", "details": {"causes": [cause]}}
    refused = ApiRefused(ACCESS, "create Job job", 422, answer)
    (only,) = refusals(Cluster(ACCESS, "team"), job, document, refused)
    assert only.why == "the API server decides it before anything is made"
