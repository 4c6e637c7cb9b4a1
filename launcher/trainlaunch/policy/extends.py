"""Lists that a policy adds to instead of replacing them: `tolerations: {extend: […]}`."""

from __future__ import annotations

from trainlaunch.job.fields.table import child
from trainlaunch.job.fields.types import Type
from trainlaunch.yamltree.source import MappingNode, Node, Scalar, SequenceNode

WORD = "extend"


def split_extends(tree: MappingNode, type_: Type | None) -> tuple[MappingNode, MappingNode]:
    """Return `tree` without what it adds to lists, and that alone, as lists at their places."""
    bare: dict[str, tuple[Scalar, Node]] = {}
    more: dict[str, tuple[Scalar, Node]] = {}
    for name, (key, value) in tree.items.items():
        inner = child(type_, name)
        if not isinstance(value, MappingNode):
            bare[name] = (key, value)
        elif inner is not None and inner.kind == "list" and list(value.items) == [WORD]:
            more[name] = (key, value.items[WORD][1])
        else:
            rest, added = split_extends(value, inner)
            if rest.items or not added.items:
                bare[name] = (key, rest)
            if added.items:
                more[name] = (key, added)
    return MappingNode(bare, tree.span, tree.kind), MappingNode(more, tree.span, tree.kind)


def extended(laid: MappingNode, more: MappingNode) -> MappingNode:
    """Return `laid` with the items of `more`'s lists behind its own; what a list has already isn't added again."""
    items = dict(laid.items)
    for name, (key, value) in more.items.items():
        own_key, own = items.get(name, (key, None))
        if isinstance(value, MappingNode):
            below = MappingNode({}, value.span, value.kind) if own is None else own
            if isinstance(below, MappingNode):  # else the job says in one word that there is none
                items[name] = (own_key, extended(below, value))
        elif own is None:
            items[name] = (key, value)
        elif isinstance(own, SequenceNode) and isinstance(value, SequenceNode):
            had = [_content(each) for each in own.items]
            new = tuple(each for each in value.items if _content(each) not in had)
            items[name] = (own_key, own._replace(items=(*own.items, *new)))
    return MappingNode(items, laid.span, laid.kind)


def _content(node: Node) -> object:
    """Return what a node says, wherever it stands."""
    if isinstance(node, Scalar):
        return node.text, node.null
    if isinstance(node, SequenceNode):
        return [_content(each) for each in node.items]
    return {name: _content(value) for name, (_, value) in node.items.items()}
