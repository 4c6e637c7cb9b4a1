"""A job's changes to the rendered file of its target, as values with places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from trainlaunch.diagnostics import Span
from trainlaunch.formats.docker.flags import Flag, flags_of
from trainlaunch.kinds import DEFAULT_KIND
from trainlaunch.targets import TARGETS
from trainlaunch.yamltree.strict import MappingNode, Node, SequenceNode


def pointer_keys(pointer: str) -> tuple[str, ...]:
    """Return the keys that a JSON pointer leads by."""
    return tuple(each.replace("~1", "/").replace("~0", "~") for each in pointer.split("/")[1:])


class Operation(NamedTuple):
    """One operation of a JSON Patch; `source` is its `from`, `kind` chooses among several objects."""

    op: str
    path: str
    source: str | None
    value: Any
    kind: str | None
    field: str
    span: Span


class Leaf(NamedTuple):
    """One value of a JSON Merge Patch: the keys that lead to it, and its place."""

    keys: tuple[str, ...]
    value: Any
    field: str
    span: Span


class Patch(NamedTuple):
    """What a job changes in its target's text; two of the three are empty."""

    flags: tuple[Flag, ...]
    leaves: tuple[Leaf, ...]
    operations: tuple[Operation, ...]


def patch_of(values: Mapping[str, Any], root: MappingNode, target: str) -> Patch | None:
    """Return what `patches` sets for `target`, or None for nothing; `values` hold no error."""
    stated = values.get("patches", {}).get(target)
    node = root.items["patches"][1] if stated else None
    if not isinstance(node, MappingNode):
        return None
    tree = node.items[target][1]
    if isinstance(tree, SequenceNode):
        kind = values.get("kubernetes", {}).get("kind", DEFAULT_KIND)
        listed = zip(stated, tree.items, range(len(stated)), strict=True)
        operations = tuple(_operation(*each) for each in listed if kind in each[0].get("kinds", (kind,)))
        return Patch((), (), operations) if operations else None
    if not isinstance(tree, MappingNode):
        return None
    if TARGETS[target].patch == "merge":
        return Patch((), tuple(_leaves(stated, tree)), ())
    arguments = tree.items["extra_args"][1] if "extra_args" in tree.items else tree
    if not isinstance(arguments, SequenceNode) or not arguments.items:
        return None
    return Patch(tuple(flags_of(arguments, None)), (), ())


def _operation(stated: Mapping[str, Any], node: Node, index: int) -> Operation:
    return Operation(
        stated["op"],
        stated["path"],
        stated.get("from"),
        stated.get("value"),
        stated.get("kind"),
        f"patches.kubernetes.{index}",
        node.span,
    )


def _leaves(value: Any, node: Node, keys: tuple[str, ...] = ()) -> Iterator[Leaf]:
    if isinstance(node, MappingNode) and (node.items or not keys):
        for name, (_, below) in node.items.items():
            yield from _leaves(value[name], below, (*keys, name))
    else:
        yield Leaf(keys, value, ".".join(("patches.compose", *keys)), node.span)
