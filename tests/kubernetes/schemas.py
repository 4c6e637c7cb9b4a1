"""Strict decoding: unknown fields, wrong JSON types and quantities, worded as the API server words them.

Core kinds are read from PyPI's kubernetes-validate, CRDs from the projects' published files in tests/schemas; a kind
without one takes every field, as one with preserveUnknownFields does.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import importlib_resources
import kubernetes_validate
import yaml

from tests.conftest import ROOT
from tests.kubernetes.kinds import Resource
from tests.kubernetes.statuses import ApiError, bad_request

VERSION = "1.36"
PUBLISHED = ROOT / "tests" / "schemas"
QUANTITY = re.compile(r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$")
_SUFFIX = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][-+]?\d+)?$")
_ROOT = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}


def check(resource: Resource, thing: dict[str, Any], *, strict: bool) -> list[str]:
    """Raise ApiError (400) where the server can't decode an object; return the unknown fields that it would ignore."""
    walk = _Walk()
    schema = _schema(resource)
    if schema is not None:
        walk.visit(schema, thing, "")
    if walk.wrong:
        raise _undecodable(resource, walk.wrong[0])
    unknown = [f'unknown field "{each}"' for each in walk.unknown]
    if unknown and strict:
        raise _undecodable(resource, f"strict decoding error: {', '.join(unknown)}")
    return unknown


def _undecodable(resource: Resource, why: str) -> ApiError:
    kind, version = resource.kind, resource.version
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


@cache
def _core() -> dict[str, Any]:
    folder = importlib_resources.files(kubernetes_validate) / "kubernetes-json-schema" / f"v{VERSION}.0-local-strict"
    found: dict[str, Any] = json.loads((folder / "_definitions.json").read_text())["$defs"]
    return found


@cache
def _schema(resource: Resource) -> dict[str, Any] | None:
    for name, each in _core().items():
        if name.startswith("io.k8s.api.") and name.endswith(f".{resource.version}.{resource.kind}"):
            found: dict[str, Any] = each
            return found
    path = PUBLISHED / f"{resource.group}_{resource.plural}.yaml"
    if not path.is_file():
        return None
    definition = yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    for version in definition["spec"]["versions"]:
        if version["name"] == resource.version:
            root: dict[str, Any] = version["schema"]["openAPIV3Schema"]
            return root | {"properties": root["properties"] | _ROOT, "additionalProperties": False}
    return None


class _Walk:
    """Collects what is wrong with an object, by path."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.wrong: list[str] = []

    def visit(self, schema: dict[str, Any], value: Any, path: str) -> None:
        """Compare one value with its schema."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if name.endswith(".Quantity"):
                self._quantity(value)
                return
            schema = _core()[name]
        if value is None or "oneOf" in schema or schema.get("x-kubernetes-int-or-string"):
            return
        allowed = schema.get("type", ())
        types = {allowed} if isinstance(allowed, str) else set(allowed)
        if types and not any(_is(value, each) for each in types):
            self._mistyped(value, types - {"null"}, path)
        elif isinstance(value, dict):
            self._mapping(schema, value, path)
        elif isinstance(value, list):
            for index, each in enumerate(value):
                self.visit(schema.get("items", {}), each, f"{path}[{index}]")

    def _mapping(self, schema: dict[str, Any], value: dict[str, Any], path: str) -> None:
        properties = schema.get("properties", {})
        other = schema.get("additionalProperties")
        for key, each in value.items():
            below = f"{path}.{key}" if path else key
            if key in properties:
                self.visit(properties[key], each, below)
            elif isinstance(other, dict):
                self.visit(other, each, below)
            elif (properties or other is False) and not schema.get("x-kubernetes-preserve-unknown-fields"):
                self.unknown.append(below)

    def _quantity(self, value: Any) -> None:
        text = str(value)
        if isinstance(value, bool) or not QUANTITY.match(text):
            self.wrong.append(f"quantities must match the regular expression '{QUANTITY.pattern}'")
        elif not _SUFFIX.match(text):
            self.wrong.append("unable to parse quantity's suffix")

    def _mistyped(self, value: Any, types: set[str], path: str) -> None:
        given = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}[
            type(value)
        ]
        wanted = {"integer": "int32", "boolean": "bool", "array": "[]", "object": "map[string]string"}
        named = ", ".join(wanted.get(each, each) for each in sorted(types))
        field = re.sub(r"\[\d+\]", "", path)
        self.wrong.append(f"json: cannot unmarshal {given} into Go struct field .{field} of type {named}")


def _is(value: Any, named: str) -> bool:
    if named in {"integer", "number"}:
        whole = isinstance(value, int) or (isinstance(value, float) and (named == "number" or value.is_integer()))
        return whole and not isinstance(value, bool)
    python = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}[named]
    return isinstance(value, python)


def quantity(text: object) -> float:
    """Return the number that a quantity means."""
    scale = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
    binary = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60}
    found = re.match(r"^([+-]?[0-9.]+)(.*)$", str(text))
    assert found, text
    number, suffix = found.groups()
    if suffix in binary or suffix in scale:
        return float(number) * (scale | binary)[suffix]
    return float(number + suffix)
