"""Values of the .env beside a Compose file, put in where its services name them.

What a finding quotes is the file's own spelling, `${NAME}`: a .env may hold what nobody should read in a log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from trainlaunch.formats.compose.values import pieces
from trainlaunch.rules.sources.env_files import lines_of
from trainlaunch.yamltree.tolerant import Mapping as MappingNode
from trainlaunch.yamltree.tolerant import Node, Scalar, Sequence

_NAMED = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?[-?][^{}]*)?\})")
_SECRET = re.compile(r"(?i)token|secret|passw|key|credential|auth")
# Of these only names are judged, and what stands in them may be secret.
_LEFT = frozenset({"environment", "env_file", "labels", "build", "secrets", "configs", "annotations"})


def values_beside(file: Path) -> dict[str, str]:
    """Return the variables of the .env beside a file of the same repository; none where there is none."""
    found: dict[str, str] = {}
    for name, text in lines_of(file.with_name(".env"), file):
        quoted = text[:1] in {"'", '"'} and text[-1:] == text[:1] and len(text) > 1
        value = text[1:-1] if quoted else re.sub(r"\s#.*", "", text).strip()
        if value and "$" not in value and not _SECRET.search(name):
            found[name] = value
    return found


def filled(node: Node, values: Mapping[str, str]) -> Node:
    """Return a node with the values of its variables, as far as they are known."""
    if isinstance(node, Scalar):
        text = _filled_text(node.text, values) if "$" in node.text else node.text
        return Scalar(node.source, node.start, node.end, node.tag, text, node.plain)
    if isinstance(node, Sequence):
        items = tuple(filled(each, values) for each in node.items)
        return Sequence(node.source, node.start, node.end, node.tag, items)
    pairs = tuple((key, value if _is_left(key) else filled(value, values)) for key, value in node.pairs)
    return MappingNode(node.source, node.start, node.end, node.tag, pairs)


def _is_left(key: Node) -> bool:
    return isinstance(key, Scalar) and key.text in _LEFT


def _filled_text(text: str, values: Mapping[str, str]) -> str:
    parts: list[str] = []
    for part, variable in pieces(text):
        match = _NAMED.fullmatch(part) if variable else None
        value = values.get(match[1] or match[2]) if match else None
        parts.append(value if value is not None else part if variable else part.replace("$", "$$"))
    return "".join(parts)
