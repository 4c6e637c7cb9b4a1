"""The hash in a name, of what a cluster holds immutable of a job: no object of that name ever has another template.

It is made of the manifest as the API server sees it, under a name that all share, since the manifest needs the name.
"""

from __future__ import annotations

from typing import Any

from trainlaunch.job.patch import Operation, pointer_keys
from trainlaunch.kinds import KINDS, Kind, Path
from trainlaunch.plan.launch_plan import LaunchPlan, cache_last_plan
from trainlaunch.plan.target_names import HASH_DIGITS
from trainlaunch.templating.environment import template_text

RENDERING_FORMAT = 3  # raised when the same plan gives other bytes; the tool's version is not in any rendered file


@cache_last_plan
def template_hash(plan: LaunchPlan) -> str:
    """Return 8 hex digits that change with what the API server lets nobody change in the plan's kind of object.

    They are of the parsed manifest: neither an order of keys nor a comment gives another name.
    """
    import hashlib
    import importlib  # a start without Kubernetes needs neither

    manifest = importlib.import_module("trainlaunch.container.manifest")  # which asks here for the name
    kind = KINDS[plan.job.kubernetes.kind]
    platform = plan.job.kubernetes._replace(stable_name=True)  # then it asks for no hash
    alike = plan._replace(name=kind.word, job=plan.job._replace(kubernetes=platform))
    text = template_text(kind.template, header=(), **manifest.manifest_context(alike))
    held = [held_immutable(kind, text), [each[:5] for each in _operations(plan) if _reaches(each, kind)]]
    return hashlib.sha256(repr(_ordered(held)).encode()).hexdigest()[:HASH_DIGITS]


def held_immutable(kind: Kind, text: str) -> list[Any]:
    """Return what nobody can change of a manifest's objects: of the last one, and all that those before it say."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    *parts, main = (each for each in yaml.load_all(text, Loader=loader) if each)
    return [[_at(main, path) for path in kind.immutable], [each.get("spec") for each in parts]]


def _ordered(value: Any) -> Any:
    """Return a value whose text is the same in whichever order its keys stand."""
    if isinstance(value, dict):
        return sorted((key, _ordered(item)) for key, item in value.items())
    return [_ordered(each) for each in value] if isinstance(value, (list, tuple)) else value


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
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
