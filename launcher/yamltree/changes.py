"""Changes of a tree of values, and what they make of one: the meaning that each edit of a text is held to."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from launcher.yamltree.documents import Mapping, Node, Scalar, Sequence, documents
from launcher.yamltree.emitter import yaml_inline

Path: TypeAlias = tuple[str | int, ...]


class EditRefused(Exception):
    """A change that no edit of the text makes, or none that leaves the rest as it is, in words that say why."""


class Set(NamedTuple):
    """What stands at `path` becomes `value`; a key that its mapping does not have is added as the last."""

    path: Path
    value: Any


class Insert(NamedTuple):
    """`value` becomes an item of a list in front of that at `path`, or its last where the index is its length."""

    path: Path
    value: Any


class Delete(NamedTuple):
    """What stands at `path` goes: a key with its value, or an item of a list."""

    path: Path


Change: TypeAlias = Set | Insert | Delete


def shown(path: Path) -> str:
    """Return a path in words."""
    return ".".join(map(str, path)) or "the document"


def index_of(node: Node, path: Path, *, missing: bool = False) -> int:
    """Return which pair or item of `node` the last step of `path` names: of a key that stands twice the last.

    Raises EditRefused where there is none; with `missing` a mapping's is then the number of its pairs.
    """
    step = path[-1]
    if isinstance(node, Sequence) and isinstance(step, int) and 0 <= step < len(node.items):
        return step
    if isinstance(node, Mapping):
        found = [at for at, (key, _) in enumerate(node.pairs) if isinstance(key, Scalar) and key.text == step]
        if found or missing:
            return found[-1] if found else len(node.pairs)
        if step in node.items:
            raise EditRefused(f"{shown(path)} comes from a mapping that is merged (<<)")
    raise EditRefused(f"there is no {shown(path)}")


def shape(node: Node) -> Any:
    """Return all that a reader may make of a node, in fresh lists; where two are equal, so are their meanings."""
    if isinstance(node, Scalar):
        return [node.tag, node.plain, node.text]
    if isinstance(node, Sequence):
        return [node.tag, [shape(item) for item in node.items]]
    return [node.tag, [[shape(key), shape(value)] for key, value in node.pairs]]


def shape_after(node: Node, change: Change, depth: int = 0) -> Any:
    """Return the shape of the root `node` after a change, made at one place, whatever else is an alias of it.

    Raises EditRefused where the change names what is not there.
    """
    path, last = change.path[: depth + 1], depth + 1 == len(change.path)
    if not isinstance(change, Delete) and depth == len(change.path):
        return _shape_of(change.value)
    made = shape(node)
    if last and isinstance(change, Insert):
        index = change.path[-1]
        if not (isinstance(node, Sequence) and isinstance(index, int) and 0 <= index <= len(node.items)):
            raise EditRefused(f"nothing can be inserted at {shown(path)}")
        made[1].insert(index, _shape_of(change.value))
        return made
    at = index_of(node, path, missing=last and isinstance(change, Set))
    if last and isinstance(change, Delete):
        if isinstance(node, Mapping) and [key.text for key in node.repeated].count(str(path[-1])):
            raise EditRefused(f"the key {shown(path)} stands twice")
        del made[1][at]
    elif isinstance(node, Mapping) and at < len(node.pairs):
        made[1][at][1] = shape_after(node.pairs[at][1], change, depth + 1)
    elif isinstance(node, Mapping) and not isinstance(change, Delete):
        made[1] += _shape_of({path[-1]: change.value})[1]
    elif isinstance(node, Sequence):
        made[1][at] = shape_after(node.items[at], change, depth + 1)
    return made


def _shape_of(value: Any) -> Any:
    return shape(documents(yaml_inline(value), "").nodes[0])
