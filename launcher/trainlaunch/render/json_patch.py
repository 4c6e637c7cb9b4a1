"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386): on plain values, and as changes of the text that has them.

Nothing that is given is changed in place.
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from trainlaunch.job.patch import Operation, pointer_keys
from trainlaunch.yamltree.changes import Change, Delete, Insert, Path, Set

_ABSENT = object()
_INDEX = re.compile(r"0|[1-9][0-9]*")


class PatchFailed(Exception):
    """An operation that can't be done, in words that follow its name."""


def after(document: Any, operation: Operation) -> Any:
    """Return `document` after one operation; raises PatchFailed."""
    value, path, source = operation.value, pointer_keys(operation.path), pointer_keys(operation.source or "")
    if operation.op == "test":
        found = _get(document, path, operation.path)
        if not _same(found, value):
            raise PatchFailed(f"tests {operation.path or 'the whole'} for {_shown(value)}, and it is {_shown(found)}")
        return document
    if operation.op in {"copy", "move"}:
        value = _get(document, source, operation.source or "")
    document = copy.deepcopy(document)
    if operation.op in {"remove", "move"}:
        document = _removed(document, source if operation.op == "move" else path, operation)
    if operation.op == "replace":
        _get(document, path, operation.path)
    if operation.op == "remove":
        return document
    return _put(document, path, copy.deepcopy(value), operation)


def merged_after(document: Any, patch: Any) -> Any:
    """Return `document` after a merge patch: null deletes, mappings merge, all else replaces."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merged_after(merged.get(key), value)
    return merged


def changes_of(document: Any, operation: Operation) -> list[Change]:
    """Return the changes that one operation makes of `document`; `after` raised nothing for it."""
    value, path, source = operation.value, pointer_keys(operation.path), pointer_keys(operation.source or "")
    made: list[Change] = []
    if operation.op in {"copy", "move"}:
        value = _get(document, source, "")
    if operation.op in {"remove", "move"}:
        gone = source if operation.op == "move" else path
        made.append(Delete(_path(document, gone)))
        document = _removed(copy.deepcopy(document), gone, operation)
    if operation.op in {"remove", "test"}:
        return made
    place = _path(document, path)
    listed = bool(path) and isinstance(_get(document, path[:-1], ""), list)
    return [*made, Insert(place, value) if listed and operation.op != "replace" else Set(place, value)]


def merge_changes(document: Any, merged: Any, keys: tuple[str, ...]) -> list[Change]:
    """Return the change that makes `merged` of `document`, where they differ at `keys` alone or above what has none."""
    for depth, key in enumerate(keys, start=1):
        if key not in merged:
            return [Delete(keys[:depth])] if key in document else []
        document, merged = document.get(key, _ABSENT), merged[key]
        if depth == len(keys) or not (isinstance(document, dict) and isinstance(merged, dict)):
            same = document is not _ABSENT and _same(document, merged)
            return [] if same else [Set(keys[:depth], merged)]
    return []


def _path(document: Any, tokens: tuple[str, ...]) -> Path:
    """Return a pointer's tokens with those of lists as numbers; `-` is the list's length."""
    path: list[str | int] = []
    for depth, name in enumerate(tokens):
        parent = _get(document, tokens[:depth], "")
        path.append(name if isinstance(parent, dict) else len(parent) if name == "-" else int(name))
    return tuple(path)


def _get(document: Any, tokens: tuple[str, ...], pointer: str) -> Any:
    for depth, token in enumerate(tokens):
        document = _step(document, token, f"/{'/'.join(tokens[:depth])}" if depth else "the whole", pointer)
    return document


def _step(value: Any, token: str, place: str, pointer: str) -> Any:
    if isinstance(value, dict):
        if token in value:
            return value[token]
        raise PatchFailed(f"names {pointer}, and {place} has no {token}; it has {', '.join(value) or 'nothing'}")
    if isinstance(value, list):
        if _INDEX.fullmatch(token) and int(token) < len(value):
            return value[int(token)]
        has = f"0 to {len(value) - 1}" if value else "none"
        raise PatchFailed(f"names {pointer}, and {place} has no index {token}; it has {has}")
    raise PatchFailed(f"names {pointer}, and {place} is {_shown(value)}, with nothing below it")


def _removed(document: Any, tokens: tuple[str, ...], operation: Operation) -> Any:
    pointer = (operation.source if operation.op == "move" else operation.path) or ""
    _get(document, tokens, pointer)
    if not tokens:
        raise PatchFailed("removes the whole object")
    parent = _get(document, tokens[:-1], pointer)
    del parent[int(tokens[-1]) if isinstance(parent, list) else tokens[-1]]
    return document


def _put(document: Any, tokens: tuple[str, ...], value: Any, operation: Operation) -> Any:
    if not tokens:
        return value
    last, pointer = tokens[-1], operation.path
    parent = _get(document, tokens[:-1], pointer)
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list) and operation.op == "replace":
        parent[int(last)] = value
    elif isinstance(parent, list):
        index = len(parent) if last == "-" else int(last) if _INDEX.fullmatch(last) else -1
        if not 0 <= index <= len(parent):
            raise PatchFailed(f"names {pointer}, and an item can be added at 0 to {len(parent)}, or - for the end")
        parent.insert(index, value)
    else:
        raise PatchFailed(f"names {pointer}, and what is above it is {_shown(parent)}, with nothing below it")
    return document


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are equal as JSON has it: 1 is 1.0 and is not true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:59]}…"
