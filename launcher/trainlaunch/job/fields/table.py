"""The table of fields: the one source of validation, defaults, the reference page and the JSON Schema."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from trainlaunch.job.fields.container import CONTAINER
from trainlaunch.job.fields.target import PATCHES, POLICY, PROFILE, RUNNING, TARGET
from trainlaunch.job.fields.training import TRAINING
from trainlaunch.job.fields.types import Field, Type, record
from trainlaunch.targets import TARGETS

_OVERRIDABLE = (*CONTAINER, *TRAINING, *RUNNING, PROFILE)

OVERRIDE = record(*_OVERRIDABLE)
OVERRIDES = Field(
    "target_overrides",
    record(*(Field(name, OVERRIDE, f"fields for {name}", default={}) for name in TARGETS)),
    "any field above for one target: mappings merge, lists and scalars replace, null is the default",
    default={},
)  # fmt: skip
_NOT_REPEATED = (OVERRIDES.name, "data_loader.loaders", "defaults", "profiles")
# Kubernetes' own objects: its documentation has their rows.
_NOT_OURS = ("kubernetes.affinity", "kubernetes.tolerations", "kubernetes.topology_spread")
JOB = record(*_OVERRIDABLE, OVERRIDES, PATCHES, TARGET, POLICY)


def rows(type_: Type = JOB, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Yield each field with its dotted path; `[]` stands for a list's items and NAME for a free key.

    What `target_overrides.T`, `data_loader.loaders.NAME` and a policy's `defaults` and `profiles` take stands elsewhere
    already, and so does what Kubernetes' own objects hold.
    """
    for field in type_.fields:
        path = prefix + field.name
        yield path, field
        if path in _NOT_REPEATED or path in _NOT_OURS:
            continue
        if field.type.kind == "object":
            yield from rows(field.type, f"{path}.")
        item = field.type.item
        if item is not None and item.kind == "object":
            yield from rows(item, f"{path}[]." if field.type.kind == "list" else f"{path}.NAME.")


def named(type_: Type, name: str) -> Field | None:
    """Return the field `name` of an object type."""
    return type_.by_name.get(name)


def child(type_: Type | None, key: str) -> Type | None:
    """Return the type of what stands under `key` of a mapping or list; None for a key that the table doesn't know."""
    if type_ is None:
        return None
    if type_.kind == "object":
        field = named(type_, key)
        return field.type if field else None
    return type_.item if type_.kind in {"map", "list"} else None


def default(path: str) -> Any:
    """Return the default of a dotted field, as the value that reading it would give."""
    parent, _, name = path.rpartition(".")
    return defaults(parent)[name]


@functools.cache
def defaults(path: str) -> Mapping[str, Any]:
    """Return the default of each field below a dotted one, and of a job's own fields below ``."""
    type_: Type | None = JOB
    for name in path.split(".") if path else ():
        type_ = child(type_, name)
    return {name: field.default for name, field in type_.by_name.items()} if type_ else {}
