"""Reads the pods of JSON or YAML as an API server would: what `kubectl get pods -o yaml` prints, or a manifest.

Text that only looks like it, whatever it is, is one error: some values end an interpreter of CEL.
"""

from __future__ import annotations

import codecs
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trainlaunch.kinds import POD

_MAX_LEVELS = 64  # a List of pods has some 16
_INTEGERS = range(-(2**63), 2**63)


class NoPodsError(Exception):
    """A text has no pods, or is none; says why."""


class Pods(NamedTuple):
    """The pods of a text, and how many objects of other kinds it has."""

    pods: Sequence[dict[str, Any]]
    others: Mapping[str, int]


def read_pods(data: bytes) -> Pods:
    """Return the pods of JSON or YAML, also in Lists and several documents. Raises NoPodsError where there are none."""
    objects: list[dict[str, Any]] = []
    is_list, left = False, [len(data) + 100_000]  # only aliases make more values than bytes
    for each in _parsed(_decoded(data)):
        is_list = is_list or (isinstance(each, dict) and each.get("items") == [])
        objects += _objects(each, left)
    found = [each for each in objects if _is_pod(each)]
    others = Counter(str(each.get("kind") or "object without a kind") for each in objects if not _is_pod(each))
    if not (found or (is_list and not others)):
        raise NoPodsError("it has no pod" + (f", but {counted(others)}" if others else ""))
    pods = [_as_server_reads(each, str(each.get("kind")), left) for each in found]
    return Pods([{"apiVersion": POD.api_version, "metadata": {}, **each} for each in pods], others)


def counted(kinds: Mapping[str, int]) -> str:
    """Return how many objects there are of each kind."""
    return ", ".join(f"{count} of kind {kind}" for kind, count in sorted(kinds.items()))


def _is_pod(value: Mapping[str, Any]) -> bool:
    return value.get("kind") == POD.name and value.get("apiVersion", POD.api_version) == POD.api_version


def _decoded(data: bytes) -> str:
    """Return text of UTF-8, or of UTF-16 where a mark says so, as PowerShell writes what it is sent."""
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise NoPodsError(f"it is no text: byte {error.start} is not {encoding.upper()[:6].rstrip('-')}") from error


def _parsed(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError:
        pass
    import yaml  # JSON needs none

    try:
        loader = _loader()
        _check_levels(yaml.parse(text, loader))
        return list(yaml.load_all(text, loader))
    except (yaml.YAMLError, ValueError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise NoPodsError(f"{place}{getattr(error, 'problem', None) or error}") from error
    except RecursionError as error:
        raise _too_deep() from error


def _check_levels(events: Iterator[Any]) -> None:
    levels = 0
    for each in events:
        name = type(each).__name__
        levels += name.endswith(("MappingStartEvent", "SequenceStartEvent"))
        levels -= name.endswith(("MappingEndEvent", "SequenceEndEvent"))
        if levels > _MAX_LEVELS:
            raise _too_deep(f"line {each.start_mark.line + 1}, column {each.start_mark.column + 1}: ")


def _too_deep(place: str = "") -> NoPodsError:
    return NoPodsError(f"{place}it has more than {_MAX_LEVELS} levels, and a pod has some 16")


def _loader() -> Any:
    """Return a loader that reads plain scalars as Kubernetes does: `=`, `<<`, times and 1:30 are strings."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        pass

    def text(loader: Any, node: Any) -> str:
        return str(loader.construct_scalar(node))

    def number(loader: Any, node: Any) -> Any:
        plain = base.construct_yaml_int if node.tag.endswith("int") else base.construct_yaml_float
        return text(loader, node) if ":" in node.value else plain(loader, node)

    for tags, construct in ((("value", "merge", "timestamp"), text), (("int", "float"), number)):
        for tag in tags:
            Loader.add_constructor(f"tag:yaml.org,2002:{tag}", construct)
    return Loader


def _check_size(left: list[int], levels: int) -> None:
    """Count one value of those that are left: aliases of YAML make many of few, or go round in a circle."""
    left[0] -= 1
    if levels > _MAX_LEVELS:
        raise _too_deep()
    if left[0] < 0:
        raise NoPodsError("its aliases stand for far more values than it has bytes")


def _objects(value: Any, left: list[int], levels: int = 0) -> Iterator[dict[str, Any]]:
    _check_size(left, levels)
    if isinstance(value, list):
        for each in value:
            yield from _objects(each, left, levels + 1)
    elif isinstance(value, dict) and isinstance(value.get("items"), list):
        # A List of one kind need not say it of each item.
        kind = str(value.get("kind", "")).removesuffix("List")
        said = {"kind": kind} if kind else {}
        for each in value["items"]:
            if isinstance(each, dict):
                yield from _objects({**said, **each}, left, levels + 1)
    elif isinstance(value, dict):
        yield value


def _as_server_reads(value: Any, at: str, left: list[int], levels: int = 0) -> Any:
    """Return a value without nulls, which are absent to a server; raises NoPodsError where one is in a list."""
    _check_size(left, levels)
    if isinstance(value, dict):
        return {
            str(key): _as_server_reads(each, f"{at}.{key}", left, levels + 1)
            for key, each in value.items()
            if each is not None
        }
    if isinstance(value, list):
        return [_as_server_reads(each, f"{at}[{place}]", left, levels + 1) for place, each in enumerate(value)]
    if value is None:
        raise NoPodsError(f"{at} is null, and a list of a pod has none")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value if isinstance(value, bool | float) or (isinstance(value, int) and value in _INTEGERS) else str(value)
