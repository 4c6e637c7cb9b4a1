"""The hash in a name, of what a cluster holds immutable of a job: no object of that name ever has another template.

It is made of the job's values and of the texts that its pods run, not of a manifest, which needs the name itself. A
test compares the two for every field and kind.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from trainlaunch.container.job_variables import shutdown_variables
from trainlaunch.container.preflight import health_text, preflight_text, readiness_text
from trainlaunch.job.patch import Operation, pointer_keys
from trainlaunch.kinds import KINDS, Kind, Path
from trainlaunch.plan.launch_plan import LaunchPlan, cache_last_plan
from trainlaunch.plan.plan_label import planned_of
from trainlaunch.plan.target_names import HASH_DIGITS

RENDERING_FORMAT = 2  # raised when the same plan gives other bytes; the tool's version is not in any rendering

# Fields of a job that reach a pod only by the texts and numbers below, or not at all.
_ELSEWHERE = frozenset({
    "path", "target", "origins", "sets", "policy", "patch", "script", "command", "data_loader", "shm_size", "shm_extra",
    "ranks_per_container", "torchrun", "healthcheck", "backoff", "code",
})  # fmt: skip
_ELSEWHERE_ON_KUBERNETES = frozenset({"namespace", "queue", "stable_name", "cpu_limit"})


@cache_last_plan
def template_hash(plan: LaunchPlan) -> str:
    """Return 8 hex digits that change with what the API server lets nobody change in the plan's kind of object."""
    job, kind = plan.job, KINDS[plan.job.kubernetes.kind]
    resources = job.resources._replace(gpus=plan.gpus)
    platform = job.kubernetes
    values = {
        "format": RENDERING_FORMAT,
        "job": _stated(job, _ELSEWHERE | {"resources", "kubernetes"} | set(kind.mutable_fields)),
        "kubernetes": _stated(platform, _ELSEWHERE_ON_KUBERNETES),
        "resources": _stated(resources, frozenset()),
        "limited": platform.cpu_limit or resources.cpus is None,
        "health": (readiness_text(job, health_text(plan)), *job.healthcheck[:3], *["stop"] * job.healthcheck.stops),
        "process": (preflight_text(plan), plan.argv, plan.nodes, *_torchrun(plan)),
        "size": plan.shm.size.value,
        "planned": planned_of(plan).text(),
        "patch": [each[:5] for each in _operations(plan) if _reaches(each, kind)],
    }
    if job.code:  # a job without it keeps its name
        values["code"] = [(index, each.digest) for index, each in job.code.items()]
    return hashlib.sha256(repr(values).encode()).hexdigest()[:HASH_DIGITS]


def _torchrun(plan: LaunchPlan) -> tuple[object, ...]:
    """Return what torchrun's variables and its Service follow from; a job without it has nothing to tell apart."""
    return (plan.job.torchrun and plan.job.torchrun.rdzv_port, *shutdown_variables(plan))


def _stated(record: NamedTuple, without: frozenset[str] | set[str]) -> tuple[tuple[str, object], ...]:
    """Return the fields that are not as the class has them, each in a form that every Python writes the same.

    A new field changes no hash of a job that doesn't state it.
    """
    usual = record._field_defaults
    pairs = ((name, value) for name, value in record._asdict().items() if name not in without)
    return tuple((name, _plain(value)) for name, value in pairs if value != usual.get(name) and not _empty(value))


def _empty(value: object) -> bool:
    """Whether a field says nothing; the number 0 does say something: no grace, no workers."""
    return value is None or value is False or (value.__class__ is not int and not value)


def _plain(value: object) -> object:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _stated(value, frozenset())  # type: ignore[arg-type]
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return tuple((key, _plain(item)) for key, item in value.items())
    return value


def _operations(plan: LaunchPlan) -> tuple[Operation, ...]:
    return plan.job.patch.operations if plan.job.patch else ()


def _reaches(operation: Operation, kind: Kind) -> bool:
    """Whether an operation of a patch touches something immutable, or an object that only serves this one."""
    other = operation.kind is not None and operation.kind.lower() != kind.word
    pointers = [operation.path, *([operation.source] if operation.source else [])]
    return other or any(_meets(pointer_keys(each), path) for each in pointers for path in kind.immutable)


def _meets(keys: Path, path: Path) -> bool:
    """Whether one of the two leads to the other, or both to the same place."""
    return all(one in {other, "*"} or other == "*" for one, other in zip(keys, path, strict=False))
