"""The one document of a YAML text as plain values, where every reader takes it for the same."""

from __future__ import annotations

from typing import Any

from trainlaunch.yamltree.documents import Mapping, Node, Sequence, documents
from trainlaunch.yamltree.scalars import value_of


def only_document(text: str) -> dict[str, Any]:
    """Return the document's values. Raises ValueError where it is broken, has odd parts, or is not alone."""
    found = documents(text, "")
    if found.broken is not None or found.odd or len(found.nodes) != 1:
        raise ValueError(found.broken.message if found.broken else "it is not one document that all read alike")
    values = _values(found.nodes[0])
    if not isinstance(values, dict):
        raise ValueError("it is not a mapping")  # noqa: TRY004  a text, not an argument
    return values


def _values(node: Node) -> Any:
    if node.tag is not None:
        raise ValueError(f"the tag {node.tag}")
    if isinstance(node, Mapping):
        if len(node.pairs) != len(node.items):
            raise ValueError("a key stands twice, or merges another mapping")
        return {key: _values(each) for key, each in node.items.items()}
    return [_values(each) for each in node.items] if isinstance(node, Sequence) else value_of(node)
