"""The table of fields: the one source of validation, defaults, the reference page and the JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator

from launcher.job.field import Field, Type, record
from launcher.job.fields_container import CONTAINER
from launcher.job.fields_target import PATCHES, RUNNING, TARGET, TARGETS, TARGETS_LATER
from launcher.job.fields_training import TRAINING

_OVERRIDABLE = (*CONTAINER, *TRAINING, *RUNNING)

OVERRIDE = record(*_OVERRIDABLE)
OVERRIDES = Field(
    "target_overrides",
    record(*(Field(name, OVERRIDE, f"fields for {name}", default={}, later=name in TARGETS_LATER)
             for name in (*TARGETS, *TARGETS_LATER))),
    "any field above for one target: mappings merge, lists and scalars replace, null is the default",
    default={},
)  # fmt: skip
JOB = record(*_OVERRIDABLE, OVERRIDES, PATCHES, TARGET)


def rows(type_: Type = JOB, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Yield each field with its dotted path; `[]` stands for a list's items and NAME for a free key.

    The fields inside `target_overrides.T` are those of the whole table and are not repeated.
    """
    for field in type_.fields:
        path = prefix + field.name
        yield path, field
        if field.type.kind == "object" and field.type.fields and path != OVERRIDES.name:
            yield from rows(field.type, f"{path}.")
        item = field.type.item
        if item is not None and item.kind == "object":
            yield from rows(item, f"{path}[]." if field.type.kind == "list" else f"{path}.NAME.")


def named(type_: Type, name: str) -> Field | None:
    """Return the field `name` of an object type."""
    return next((field for field in type_.fields if field.name == name), None)
