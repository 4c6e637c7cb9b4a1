"""Fields of a task definition of Amazon ECS, as the API and as CloudFormation spell them."""

from __future__ import annotations

from trainlaunch.rules.written.model import at
from trainlaunch.yamltree.documents import Mapping, Node, Scalar, Sequence


def field(node: Node | None, *path: str) -> Node | None:
    """Return the node at a path, each of whose keys may start with a capital, as in CloudFormation."""
    for key in path:
        node = at(node, key) or at(node, key[0].upper() + key[1:])
    return node


def is_fargate(task: Mapping | None) -> bool:
    """Return whether a task definition is for Fargate alone."""
    listed = field(task, "requiresCompatibilities")
    words = [each.text for each in listed.items if isinstance(each, Scalar)] if isinstance(listed, Sequence) else []
    return bool(words) and set(words) == {"FARGATE"}
