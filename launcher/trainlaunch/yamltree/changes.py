"""Changes of a tree of values, and what they make of one: the meaning that each edit of a text is held to."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from trainlaunch.yamltree.emitter import Quoted, yaml_inline
from trainlaunch.yamltree.tolerant import Mapping, Node, Scalar, Sequence, documents

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
    """Return all that a reader makes of a node, merges carried out, in fresh lists; equal ones mean the same."""
    if isinstance(node, Scalar):
        return [node.tag, node.plain, node.text or ("null" if node.plain else "")]
    if isinstance(node, Sequence):
        return [node.tag, [shape(item) for item in node.items]]
    others = [[shape(key), shape(value)] for key, value in node.pairs if not isinstance(key, Scalar)]
    return [node.tag, {key: shape(item) for key, item in node.items.items()}, others]


def shape_after(node: Node, change: Change, depth: int = 0) -> Any:
    """Return the shape of the root `node` after a change, made at one place, whatever else is an alias of it.

    Raises EditRefused where the change names what is not there.
    """
    path, last = change.path[: depth + 1], depth + 1 == len(change.path)
    if not isinstance(change, Delete) and depth == len(change.path):
        return shape(documents(yaml_inline(change.value), "").nodes[0])
    made, step = shape(node), path[-1]
    if last and isinstance(change, Insert):
        if not (isinstance(node, Sequence) and isinstance(step, int) and 0 <= step <= len(node.items)):
            raise EditRefused(f"nothing can be inserted at {shown(path)}")
        made[1].insert(step, shape_after(node, change, depth + 1))
        return made
    at = index_of(node, path, missing=last and isinstance(change, Set))
    if last and isinstance(change, Delete):
        if isinstance(node, Mapping) and str(step) in [key.text for key in node.repeated]:
            raise EditRefused(f"the key {shown(path)} stands twice")
        del made[1][step]
    else:
        below = node.items if isinstance(node, Sequence) else [value for _, value in _pairs(node)]
        made[1][step] = shape_after(below[at] if at < len(below) else node, change, depth + 1)
    return made


def _pairs(node: Node) -> tuple[tuple[Node, Node], ...]:
    return node.pairs if isinstance(node, Mapping) else ()


def value_of_node(node: Node) -> Any:
    """Return a value that is written as `node` is, merges carried out: plain scalars are Quoted as they stand there.

    Raises EditRefused for what would lose a tag or a key that is no scalar.
    """
    if node.tag is not None:
        raise EditRefused("a value with a tag is repeated by an alias")
    if isinstance(node, Scalar):
        if not node.plain or "\n" in node.raw:
            return node.text
        return Quoted(node.raw) if node.raw else None
    if isinstance(node, Sequence):
        return [value_of_node(item) for item in node.items]
    if any(not isinstance(key, Scalar) for key, _ in node.pairs):
        raise EditRefused("a value with a key that is not a scalar is repeated by an alias")
    return {value_of_node(node.keys[name]) or "": value_of_node(item) for name, item in node.items.items()}
