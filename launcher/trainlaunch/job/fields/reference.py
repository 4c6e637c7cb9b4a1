"""The reference page and the JSON Schema of the job file, written from the table of fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.job.fields.table import JOB, OVERRIDE, OVERRIDES, rows
from trainlaunch.job.fields.types import Field, Type, spell
from trainlaunch.targets import TARGETS
from trainlaunch.units import MIN_BARE_SIZE

_INTRO = """\
# The job file

One YAML mapping. Written by `launcher/trainlaunch/job/fields/reference.py` from the table of fields; don't edit this
page.

- **Sizes**: `Ki Mi Gi Ti`, or lower-case `k m g t` with an optional `b`, all binary: `512m` is 512 MiB. `8G`, `8GB`
  and `8M` are errors, since Docker and Kubernetes read them differently, and so are bare integers under 1 MiB.
- **CPUs**: `4`, `1.5`, `500m`. **Durations**: `30s`, `5m`, `1h30m`, `2d`.
- **Strings** (`env`, `labels`, `command` and all other text) take a plain scalar as it is written: `no` is "no",
  `1e3` is "1e3", `08` is "08". Integers are plain digits and booleans are `true` or `false`; `"8"`, `0o10`, `1_000`
  and `yes` are errors.
- **`target_overrides.T`** takes any field for one target: mappings merge, lists and scalars replace, null is the
  default.
- **`--set field=value`** lays one value on top of all that, for one invocation: `--set resources.memory=16Gi`,
  `--set mounts.0.source=./data`, `--set 'env.DEBUG="1"'`. A list's length as index appends: `--set command.2=--amp`.
- Precedence: defaults < defaults of policies < `profile` < job < target_overrides < `--set`. The lock (`trainlaunch
  lock`) fills what all of these leave open: the image's digest and `image_entrypoint`. Limits of the policy come last
  ([policy.md](policy.md)); [patches](patches.md) change the rendered file in what the plan does not decide.
- Duplicate keys are errors. Anchors, aliases and `<<` work; tags don't. At most 1 MiB and 10,000 values.
"""
_HEAD = "| field | type | default | meaning | docker run | Compose | Kubernetes |\n|---|---|---|---|---|---|---|\n"

_SIZE = r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|[kmgt]b?)$|^[0-9]{7,}$"
_CPUS = r"^([0-9]+(\.[0-9]{1,3})?|[0-9]+m)$"
_DURATION = r"^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
_REQUIRED_NAMES = {"type": "array", "minItems": 1, "items": {"type": "string"}}
_SCALARS = [
    "string",
    "number",
    "boolean",
]  # env, labels and args keep a plain scalar's spelling, whatever YAML calls it


def reference_markdown() -> str:
    """Return docs/job-file.md."""
    lines = "".join(_row(path, field) for path, field in rows())
    return f"{_INTRO}\n{_HEAD}{lines}"


def _row(path: str, field: Field) -> str:
    cells = (
        f"`{path}`",
        type_words(field.type),
        field.default_text,
        field.meaning,
        field.docker,
        field.compose,
        field.kubernetes or (f"`{field.pod_key}`" if field.pod_key else ""),
    )
    return table_line(cells)


def table_line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def type_words(type_: Type) -> str:
    """Return a type in words, with its bounds where they say more than the type does."""
    words = _plain_words(type_)
    if type_.auto:
        words = f"auto, {words}"
    return f"{words}, null" if type_.nullable else words


def _plain_words(type_: Type) -> str:
    if type_.kind == "list":
        items = f"list of {type_words(type_.inner)}"
        return f"{items}, or one" if type_.single else items
    if type_.kind == "choice":
        return ", ".join(type_.choices)
    if (
        type_.low
        and type_.kind in {"int", "size", "cpus", "duration"}
        and not (type_.kind == "size" and type_.low == 1)
    ):
        kind = {"int": "integer", "cpus": "CPUs"}.get(type_.kind, type_.kind)
        return f"{kind} ≥ {spell(type_, type_.low)}"
    if type_.instead:
        return ", ".join((*type_.instead, "mapping"))
    return {"int": "integer ≥ 0", "map": "mapping", "object": "mapping", "any": "any"}.get(
        type_.kind, type_.what.removeprefix("an ").removeprefix("a ")
    )


def json_schema() -> dict[str, Any]:
    """Return the schema, draft 2020-12. What needs a target or the source spelling is left to read_job.

    It asks for what a job needs; a file whose policy gives that is reported all the same.
    """
    needed = [_needed(field.name) for field in JOB.fields if field.required]
    return {
        **schema_of("trainlaunch job file", JOB),
        "allOf": [*needed, _needed("command", "script"), _not_both("command", "script")],
    }


def _needed(*names: str) -> dict[str, Any]:
    """Return that one of these is set, unless an override sets one: the file may be for that target alone."""
    stated = _one_stated(names)
    override = {"type": "object", **stated}
    some = {"anyOf": [{"properties": {each: override}, "required": [each]} for each in TARGETS]}
    elsewhere: dict[str, Any] = {"properties": {OVERRIDES.name: some}, "required": [OVERRIDES.name]}
    if names == ("image",):
        without = [each.name for each in TARGETS.values() if not each.starts_container]
        elsewhere = {"anyOf": [elsewhere, {"properties": {"target": {"enum": without}}, "required": ["target"]}]}
    return {"if": {"not": elsewhere}, "then": stated}


def _one_stated(names: tuple[str, ...]) -> dict[str, Any]:
    each = [{"required": [name]} for name in names]
    return each[0] if len(each) == 1 else {"anyOf": each}


def _not_both(*names: str) -> dict[str, Any]:
    return {"not": {"required": list(names)}}


def schema_of(title: str, type_: Type, override: Type = OVERRIDE) -> dict[str, Any]:
    """Return the schema of a whole file, an object of `type_`; `override` is what each target_overrides.T takes."""
    draft = "https://json-schema.org/draft/2020-12/schema"
    defined = {"override": _object(override, nulls=True, whole=False)}
    return {"$schema": draft, "title": title, **_object(type_, nulls=False, whole=False), "$defs": defined}


def _field(field: Field, *, nulls: bool, whole: bool) -> dict[str, Any]:
    if field.name == OVERRIDES.name:
        known = {each.name: {"$ref": "#/$defs/override"} for each in field.type.fields}
        closed = {"type": "object", "additionalProperties": False}
        return {"description": field.meaning, **closed, "properties": known}
    schema = _type(field.type, nulls=nulls, whole=whole)
    if nulls:
        schema = {"anyOf": [{"type": "null"}, schema]}
    schema = {"description": field.meaning, **schema}
    if field.default is not None:
        schema["default"] = _plain(field.type, field.default)
    return schema


def _plain(type_: Type, value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return spell(type_, value) if type_.kind in {"size", "cpus", "duration"} and value != 0 else value


def _type(type_: Type, *, nulls: bool, whole: bool) -> dict[str, Any]:
    if type_.kind == "object":
        return _object(type_, nulls=nulls, whole=whole)
    if type_.kind == "map":
        return _map(type_, nulls=nulls, whole=whole)
    if type_.kind == "list":
        return _list(type_)
    schema = _SCALAR_SCHEMAS[type_.kind](type_)
    if type_.auto:
        return {"anyOf": [{"const": "auto"}, schema]}
    return {"anyOf": [{"type": "null"}, schema]} if type_.nullable else schema


def _object(type_: Type, *, nulls: bool, whole: bool) -> dict[str, Any]:
    """Return an object's schema; `whole` ones stand in lists, which never merge, so their required fields count."""
    schema: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: _field(field, nulls=nulls, whole=whole) for field in type_.fields},
    }
    required = [field.name for field in type_.fields if field.required]
    schema = {**schema, "required": required} if whole and required else schema
    return {"anyOf": [schema, {"enum": list(type_.instead)}]} if type_.instead else schema


def _map(type_: Type, *, nulls: bool, whole: bool) -> dict[str, Any]:
    item = _type(type_.inner, nulls=nulls, whole=whole)
    schema: dict[str, Any] = {
        "type": "object",
        "propertyNames": {"pattern": f"^(?:{type_.keys[0]})$"},
        "additionalProperties": {"anyOf": [{"type": "null"}, item]} if nulls else item,
    }
    return {**schema, "minProperties": type_.low} if type_.low else schema


def _list(type_: Type) -> dict[str, Any]:
    item = _type(type_.inner, nulls=False, whole=True)
    schema: dict[str, Any] = {"type": "array", "items": item}
    if type_.low:
        schema["minItems"] = type_.low
    others = [item] if type_.single else []
    if type_.extends:
        others.append(
            {"type": "object", "additionalProperties": False, "required": ["extend"], "properties": {"extend": schema}}
        )
    return {"anyOf": [schema, *others]} if others else schema


def _text(type_: Type) -> dict[str, Any]:
    return {"type": _SCALARS, "pattern": f"^(?:{type_.pattern})$"} if type_.pattern else {"type": _SCALARS}


def _int(type_: Type) -> dict[str, Any]:
    return {"type": "integer", "minimum": type_.low, "maximum": type_.high}


def _size(type_: Type) -> dict[str, Any]:
    number: dict[str, Any] = {"type": ["string", "integer"], "pattern": _SIZE, "minimum": MIN_BARE_SIZE}
    return {"anyOf": [{"const": 0}, number]} if type_.low == 0 else number


def _gpus(type_: Type) -> dict[str, Any]:
    ids = {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": ["string", "integer"]}}
    return {"anyOf": [_int(type_), {"const": ALL_GPUS}, ids]}


def _ulimit(type_: Type) -> dict[str, Any]:
    both = {"soft": _int(type_), "hard": _int(type_)}
    pair = {"type": "object", "properties": both, "required": list(both), "additionalProperties": False}
    return {"anyOf": [_int(type_), pair]}


_SCALAR_SCHEMAS: dict[str, Callable[[Type], dict[str, Any]]] = {
    "text": _text,
    "int": _int,
    "size": _size,
    "gpus": _gpus,
    "ulimit": _ulimit,
    "labels": lambda _: {"anyOf": [_REQUIRED_NAMES, {"type": "object", "additionalProperties": {"type": "string"}}]},
    "verbatim": lambda type_: {} if type_.nullable else {"type": "object"},
    "bool": lambda _: {"type": "boolean"},
    "choice": lambda type_: {"enum": list(type_.choices)},
    "cpus": lambda _: {"type": ["string", "number"], "pattern": _CPUS, "exclusiveMinimum": 0},
    "duration": lambda _: {"type": "string", "pattern": _DURATION},
}
