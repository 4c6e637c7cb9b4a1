"""Checks what only Kubernetes knows: the kind against what it runs, and its own objects against their rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainlaunch.job.reserved import KUEUE_QUEUE_LABEL
from trainlaunch.job.validation.context import ValidationContext, cannot
from trainlaunch.job.values.scalar_reader import BAD
from trainlaunch.kinds import DEFAULT_KIND, KINDS, Kind

_WITHOUT_VALUES = ("Exists", "DoesNotExist")
_WITH_ONE_NUMBER = ("Gt", "Lt")


def check_platform(job: ValidationContext) -> None:
    """Report each contradiction within `kubernetes`, and between it and the rest of the job."""
    _check_nodes(job)
    _check_attempts(job)
    _check_exit_codes(job)
    _check_queue(job)
    _check_network(job)
    _check_requirements(job)
    _check_label_keys(job)
    _check_tolerations(job)
    _check_spread(job)


def _kind(job: ValidationContext) -> Kind:
    return KINDS[job.value("kubernetes.kind") or DEFAULT_KIND]


def _check_nodes(job: ValidationContext) -> None:
    nodes, kind = job.value("torchrun.nnodes") or 1, _kind(job)
    if nodes > 1 and kind.multi_node_unsupported:
        cannot(
            job,
            "torchrun.nnodes",
            f"{kind.word} of {nodes} nodes (torchrun.nnodes {nodes}, kubernetes.kind {kind.word})",
            why=kind.multi_node_unsupported,
            fix="set kubernetes.kind to job",
        )


def _check_attempts(job: ValidationContext) -> None:
    attempts, nodes = job.value("restart.max_attempts") or 1, job.value("torchrun.nnodes") or 1
    kind = _kind(job)
    if attempts > 1 and kind.refuses_attempts(nodes):
        of_nodes = "" if kind.retry_unsupported else f" of {nodes} nodes"
        instead = "jobset, which starts all of them again" if of_nodes else "jobset" if nodes > 1 else "job"
        cannot(
            job,
            "restart.max_attempts",
            f"{kind.word}{of_nodes} that starts {attempts} times (restart.max_attempts {attempts})",
            why=kind.refuses_attempts(nodes),
            fix=f"set kubernetes.kind to {instead}, or restart.max_attempts to 1",
        )


def _check_exit_codes(job: ValidationContext) -> None:
    kind = _kind(job)
    if job.value("restart.on_exit_codes") is not None and not kind.pod_failure_policy:
        takes = " or ".join(each.word for each in KINDS.values() if each.pod_failure_policy)
        cannot(
            job,
            "restart.on_exit_codes",
            f"{kind.word} that tells exit codes apart (restart.on_exit_codes)",
            why=f"a {kind.name} has no podFailurePolicy of its own",
            fix=f"set kubernetes.kind to {takes}, or delete restart.on_exit_codes",
        )


def _check_queue(job: ValidationContext) -> None:
    queue = job.value("kubernetes.queue")
    kind = _kind(job)
    if queue is not None and not kind.can_wait:
        cannot(
            job,
            "kubernetes.queue",
            f"{kind.word} that waits in a queue (kubernetes.queue {queue})",
            why=f"a {kind.name} can't be suspended, so it would run before the queue admits it",
            fix="set kubernetes.kind to job",
        )
    if KUEUE_QUEUE_LABEL in (job.value("labels") or {}):
        job.add(
            "TL109",
            f"labels.{KUEUE_QUEUE_LABEL}",
            f"labels.{KUEUE_QUEUE_LABEL} is what kubernetes.queue writes",
            why="labels stand on pods too, which the queue would count a second time",
            fix=f"delete it, and set kubernetes.queue to {job.value('labels')[KUEUE_QUEUE_LABEL]}",
        )


def _check_network(job: ValidationContext) -> None:
    level = job.value("kubernetes.pod_security") or "restricted"
    if job.value("kubernetes.host_network") and level != "privileged":
        job.add(
            "TL109",
            "kubernetes.host_network",
            f"kubernetes.host_network is true, and kubernetes.pod_security {level} forbids it",
            why="a namespace that enforces the level refuses the pod, and the Job waits without an error",
            fix="set kubernetes.pod_security to privileged, or delete host_network",
        )


def _objects(value: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each mapping at and below `path` with its own path; what could not be read is left out."""
    if isinstance(value, Mapping):
        yield path, value
        for name, inner in value.items():
            yield from _objects(inner, f"{path}.{name}")
    elif isinstance(value, tuple):
        for index, inner in enumerate(value):
            yield from _objects(inner, f"{path}.{index}")


def _check_requirements(job: ValidationContext) -> None:
    """Report each requirement of labels whose values don't go with its operator."""
    for field in ("affinity", "topology_spread"):
        for path, found in _objects(job.value(f"kubernetes.{field}"), f"kubernetes.{field}"):
            operator, values = found.get("operator", BAD), found.get("values", ())
            if "operator" not in found or BAD in (operator, values) or BAD in values:
                continue
            if operator in _WITHOUT_VALUES and values:
                job.add(
                    "TL109",
                    f"{path}.values",
                    f"{path} sets {operator}, which takes no values",
                    fix=f"delete {path}.values",
                )
            elif operator in _WITH_ONE_NUMBER and not (len(values) == 1 and re.fullmatch(r"-?\d+", values[0])):
                job.add(
                    "TL107",
                    path,
                    f"{path} sets {operator} with {len(values)} values; expected one integer",
                    fix="write values: [1]",
                )
            elif ".matchFields." in path and len(values) > 1:
                job.add(
                    "TL107",
                    f"{path}.values",
                    f"{path}.values names {len(values)} nodes; one fits in a requirement of a field",
                    fix="write matchExpressions with the key kubernetes.io/hostname for several",
                )
            elif operator in {"In", "NotIn"} and not values:
                job.add(
                    "TL106",
                    path,
                    f"{path}.values is missing; {operator} compares with one or more",
                    fix=f"add values: [a] to {path}",
                )


def _check_tolerations(job: ValidationContext) -> None:
    for path, found in _objects(job.value("kubernetes.tolerations"), "kubernetes.tolerations"):
        if BAD in found.values():
            continue
        operator = found.get("operator", "Equal")
        if operator == "Exists" and found.get("value"):
            job.add(
                "TL109",
                f"{path}.value",
                f"{path} sets Exists and a value",
                why="Exists tolerates every value",
                fix=f"delete {path}.value",
            )
        if operator == "Equal" and "key" not in found:
            job.add(
                "TL106",
                path,
                f"{path} has no key, and its operator is Equal",
                fix=f"add key to {path}, or operator: Exists for every taint",
            )
        if "tolerationSeconds" in found and found.get("effect") != "NoExecute":
            job.add(
                "TL109",
                f"{path}.tolerationSeconds",
                f"{path}.tolerationSeconds goes with the effect NoExecute alone",
                fix=f"set {path}.effect to NoExecute",
            )


def _check_label_keys(job: ValidationContext) -> None:
    for path, found in _objects(job.value("kubernetes.affinity"), "kubernetes.affinity"):
        stated = [each for each in ("matchLabelKeys", "mismatchLabelKeys") if found.get(each)]
        if stated and "labelSelector" not in found:
            job.add(
                "TL106",
                path,
                f"{path}.{stated[0]} goes with a labelSelector alone",
                fix=f"add labelSelector: {{}} to {path}, or delete {stated[0]}",
            )


def _check_spread(job: ValidationContext) -> None:
    """Report constraints that spread by the same, and those whose fields don't go together."""
    seen: dict[tuple[Any, Any], str] = {}
    for path, found in job.entries("kubernetes.topology_spread"):
        pair = (found.get("topologyKey"), found.get("whenUnsatisfiable"))
        if pair in seen and BAD not in pair and None not in pair:
            job.add(
                "TL109",
                path,
                f"{seen[pair]} and {path} both spread by {pair[0]} with {pair[1]}",
                fix="delete one of them",
            )
        seen.setdefault(pair, path)
        if "minDomains" in found and found.get("whenUnsatisfiable") == "ScheduleAnyway":
            job.add(
                "TL109",
                f"{path}.minDomains",
                f"{path}.minDomains goes with whenUnsatisfiable DoNotSchedule alone",
                fix=f"delete {path}.minDomains",
            )
