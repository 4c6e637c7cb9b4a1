"""Which field of a job file a field of the Kubernetes API was spelled from, by its path: spec.containers[0].image."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainlaunch.job.fields.kubernetes import POD_KEYS
from trainlaunch.job.spec import JobSpec

_RESOURCES = {
    "cpu": "resources.cpus",
    "memory": "resources.memory",
    "ephemeral-storage": "resources.ephemeral_storage",
}
# The end of an API field → the job's field; the first that matches counts.
_FIELDS = tuple(
    (re.compile(pattern), field)
    for pattern, field in (
        (r"containers\[\d+\]\.image$", "image"),
        (r"containers\[\d+\]\.imagePullPolicy$", "pull_policy"),
        (r"containers\[\d+\]\.workingDir$", "working_dir"),
        (r"containers\[\d+\]\.(command|args)\b", "command"),
        (r"containers\[\d+\]\.(readiness|liveness|startup)Probe\b", "healthcheck"),
        (r"securityContext\.(runAsUser|runAsGroup|runAsNonRoot)\b", "user"),
        (r"securityContext\.supplementalGroups\b", "group_add"),
        (r"securityContext\.fsGroup\b", "kubernetes.fs_group"),
        (r"\breadOnlyRootFilesystem\b", "read_only"),
        (r"\bactiveDeadlineSeconds\b", "active_deadline"),
        (r"\bterminationGracePeriodSeconds\b", "stop_grace_period"),
        (r"\bttlSecondsAfterFinished\b", "ttl_after_finished"),
        (r"\b(backoffLimit|maxRestarts)\b", "restart.max_attempts"),
        (r"\bserviceAccountName\b", "kubernetes.service_account"),
        (r"\bnodeSelector\b", "kubernetes.node_selector"),
        (r"\baffinity\b", "kubernetes.affinity"),
        (r"\btolerations\b", "kubernetes.tolerations"),
        (r"\btopologySpreadConstraints\b", "kubernetes.topology_spread"),
        (r"\bhostNetwork\b", "kubernetes.host_network"),
        (r"\bpriority\b", "kubernetes.priority_class"),
        *((rf"\b{key}\b", f"kubernetes.{field}") for key, field in POD_KEYS.items()),
        (r"\bimagePullSecrets\b", "kubernetes.image_pull_secrets"),
        (r"metadata\.namespace$", "kubernetes.namespace"),
        (r"metadata\.labels\b", "labels"),
        (r"metadata\.annotations\b", "annotations"),
        (r"metadata\.name$", "name"),
    )
)


def field_of(job: JobSpec, document: Mapping[str, Any], path: str) -> str:
    """Return the job's field that an API field was spelled from; `` where it was none."""
    resource = re.search(r"resources\.(?:limits|requests)(?:\[([^\]]+)\]|\.([\w./-]+))?", path)
    if resource is not None:
        return resource_field(job, resource[1] or resource[2] or "")
    for part, finder in (("env", _variable), ("volumeMounts", _mount), ("volumes", _mount)):
        item = re.search(rf"^(.*\b{part})\[(\d+)\]", path)
        if item is not None:
            return finder(job, _at(document, item[1]), int(item[2]))
    return next((field for pattern, field in _FIELDS if pattern.search(path)), "")


def resource_field(job: JobSpec, resource: str) -> str:
    """Return the job's field of a resource's Kubernetes name."""
    plain = resource.removeprefix("limits.").removeprefix("requests.")
    if plain == job.resources.gpu_resource:
        return "resources.gpus"
    if plain in job.resources.extended:
        return f"resources.extended.{plain}"
    return _RESOURCES.get(plain, "resources")


def _at(document: Mapping[str, Any], path: str) -> Any:
    """Return the value at an API path like `spec.template.spec.containers[0].env`; None where there is none."""
    value: Any = document
    for step in _steps(path):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _steps(path: str) -> Iterator[str | int]:
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        yield int(index) if index else name


def _variable(job: JobSpec, entries: Any, index: int) -> str:
    name = _name_at(entries, index)
    if name in job.secrets:
        return f"secrets.{name}"
    return f"env.{name}" if name in job.env else "env"


def _mount(job: JobSpec, entries: Any, index: int) -> str:
    name = _name_at(entries, index)
    number = re.fullmatch(r"mount-(\d+)", name)
    if number is not None and int(number[1]) < len(job.mounts):
        return f"mounts.{number[1]}"
    return "shm_size" if name == "shm" else "secrets" if name.startswith("secret-") else ""


def _name_at(entries: Any, index: int) -> str:
    if isinstance(entries, list) and index < len(entries) and isinstance(entries[index], dict):
        return str(entries[index].get("name") or "")
    return ""
