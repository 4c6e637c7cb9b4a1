"""Finds the field and the line of the job file that words of a cluster are about: refusals, and sources that it lacks.

A ConfigMap, a Secret or a key that a pod refers to and its namespace lacks: as a variable it stands in the container's
status, as a mount only in events, while the status says ContainerCreating for ever. Neither passes by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from trainlaunch.container.api_fields import field_of, resource_field
from trainlaunch.diagnostics import Diagnostic, Span
from trainlaunch.job.spec import JobSpec
from trainlaunch.run.kubernetes.api_errors import REFUSED, ApiRefused
from trainlaunch.run.kubernetes.client import Cluster

_ABOUT_THE_OBJECT = frozenset({400, 403, 422})


def refusals(cluster: Cluster, job: JobSpec, document: Mapping[str, Any], refused: ApiRefused) -> list[Diagnostic]:
    """Return an error for each thing that the API server has against a document, at the job file's line if it has one.

    A refusal without causes, like that of a quota or an admission webhook, is one error.
    """
    if refused.denied_by_rbac or refused.status not in _ABOUT_THE_OBJECT:
        return list(refused.diagnostics)
    name = f"{document['kind']} {document['metadata']['name']}"
    causes = [each for each in refused.details.get("causes") or () if each.get("field") or each.get("message")]
    if not causes:
        field = field_in_words(job, refused.words)
        if not field:
            return list(refused.diagnostics)
        return [_refusal(cluster, job, field, f"{name}: {refused.words}", "")]
    found: dict[tuple[str, str], Diagnostic] = {}
    for each in causes:
        path, says = str(each.get("field") or ""), " ".join(str(each.get("message") or "").split())
        field = field_of(job, document, path)
        # requests and limits are one field of the job, so what holds for both is said once
        found.setdefault((field or path, says), _refusal(cluster, job, field, f"{name}: {says}", path))
    return list(found.values())


def _refusal(cluster: Cluster, job: JobSpec, field: str, says: str, path: str) -> Diagnostic:
    if path:
        where = f"its field {path} comes from {field}" if field else f"its field is {path}"
    else:
        where = "the API server decides it before anything is made" + (f", from {field}" if field else "")
    return Diagnostic(
        REFUSED,
        f"{cluster.words} refuses {says}",
        f"change {field}, then start it again" if field else "change what the API server names; nothing was made",
        why=where,
        span=span_of(job, field),
        field=field,
    )


def span_of(job: JobSpec, field: str) -> Span | None:
    """Return the place of a field in the job file, or of the nearest field around it that is set."""
    while field:
        span = job.span(field)
        if span is not None:
            return span
        field = field.rpartition(".")[0]
    return None


def field_in_words(job: JobSpec, words: str) -> str:
    """Return the job's field that a sentence of the API server is about: quotas, limit ranges and the scheduler."""
    names = _resources_named(words)
    if names:
        return resource_field(job, names[0])
    hints = {
        "priorityclass": "kubernetes.priority_class",
        "priority class": "kubernetes.priority_class",
        "serviceaccount": "kubernetes.service_account",
        "service account": "kubernetes.service_account",
        "runtimeclass": "kubernetes.runtime_class",
        "persistentvolumeclaim": "mounts",
        "node affinity/selector": "kubernetes.node_selector",
        "taint": "kubernetes.tolerations",
    }
    lowered = words.lower()
    return next((field for hint, field in hints.items() if hint in lowered), "")


def _resources_named(words: str) -> list[str]:
    requested = words.partition("exceeded quota: ")[2].partition("requested: ")[2].partition(", used: ")[0]
    if requested:
        return [each.partition("=")[0] for each in requested.split(",")]
    limit = re.search(r"(?:maximum|minimum) ([\w./-]+) usage per (?:Container|Pod)", words)
    if limit is not None:
        return [limit[1]]
    return re.findall(r"Insufficient ([\w./-]+?)[.,;]?(?:\s|$)", words)


_ABSENT = re.compile(r'\b(?P<kind>secret|configmap) "(?P<name>[^"]+)" not found', re.I)
_NO_KEY = re.compile(r"couldn't find key (?P<key>\S+) in (?P<kind>Secret|ConfigMap) [^\s/]+/(?P<name>[^\s,;]+)")
_NO_KEY_OF_MOUNT = re.compile(r"references non-existent (?P<kind>secret|config) key: (?P<key>[-._a-zA-Z0-9]+)")
_VOLUME = re.compile(r'MountVolume\.SetUp failed for volume "([^"]+)"')


class MissingSource(NamedTuple):
    """What is missing: `kind` is secret or configmap; the key of one that is there, or else all of `name`.

    `volume` is the pod's, for one that is mounted; with a key the kubelet then doesn't say the name.
    """

    kind: str
    name: str = ""
    key: str = ""
    volume: str = ""


def missing_source(words: str) -> MissingSource | None:
    """Return what the kubelet says is missing; None where its words are about something else."""
    volume = _VOLUME.search(words)
    mounted = volume[1] if volume else ""
    found = _ABSENT.search(words) or _NO_KEY.search(words)
    if found is not None:
        known = found.groupdict()
        return MissingSource(known["kind"].lower(), known["name"], known.get("key", ""), mounted)
    key = _NO_KEY_OF_MOUNT.search(words)
    if key is None:
        return None
    return MissingSource("secret" if key["kind"] == "secret" else "configmap", "", key["key"], mounted)


def field_of_source(job: JobSpec, missing: MissingSource) -> str:
    """Return the job's field that refers to what is missing; empty where none does, as for one that a patch added."""
    return next(_fields(job, missing), "")


def _fields(job: JobSpec, missing: MissingSource) -> Iterator[str]:
    volume = re.fullmatch(r"(mount|secret)-(\d+)", missing.volume)
    if volume is not None:
        mounts = [f"mounts.{index}" for index in range(len(job.mounts))]
        secrets = [f"secrets.{name}" for name, each in job.secrets.items() if each.as_file]
        yield from (mounts if volume[1] == "mount" else secrets)[int(volume[2]) :][:1]
    for name, secret in job.secrets.items():
        source, _, key = (secret.kubernetes or "").partition("/")
        if missing.kind == "secret" and missing.name == source and missing.key in {"", key}:
            yield f"secrets.{name}"
    for index, each in enumerate(job.mounts):
        if missing.kind == "configmap" and each.type == "config" and each.source == missing.name:
            yield f"mounts.{index}"
