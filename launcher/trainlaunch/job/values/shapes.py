"""What to type instead of a value of the wrong shape: one value for a list, a list for a mapping, and so on."""

from __future__ import annotations

import re
import shlex

from trainlaunch.job.fields.types import Type, spell
from trainlaunch.job.values.scalar_reader import article_of, quoted
from trainlaunch.yamltree.strict import MappingNode, Node, ScalarNode, SequenceNode

_WITHOUT_QUOTES = re.compile(r"[A-Za-z_./][\w./=-]*|--?[\w=./-]+")
_MAX_ITEMS = 20  # items; a longer list is not written out again


def fix_shape(type_: Type, node: Node, path: str) -> str:
    """Return an imperative with what the user most likely means, spelled as the field at `path` takes it."""
    if isinstance(node, ScalarNode):
        found = _from_scalar(type_, node, path)
    elif isinstance(node, SequenceNode):
        found = _from_list(type_, node, path)
    else:
        found = _from_mapping(type_, node)
    if found:
        return found
    if type_.kind == "object" and path.startswith("secrets."):
        return f"write {{env: {path.partition('.')[2]}}}"
    examples = {"list": "a list, [a, b]", "map": "a mapping, {name: value}", "object": _example(type_)}
    asked = examples.get(type_.kind, "one value" if path.rpartition(".")[2].isdigit() else article_of(type_))
    return f"write {asked}"


def _from_scalar(type_: Type, node: ScalarNode, path: str) -> str | None:
    if path.partition(".")[0] == "mounts":
        return f"write {_mount(node.text) or '{type: bind, source: ./src, target: /workspace}'}"
    if type_.kind != "list":
        return _batch_bytes(node, path)
    if type_.inner.kind == "object":
        return None
    if type_.inner.kind == "int":
        numbers = re.findall(r"[0-9]+", node.text)
        whole = node.text.count("(") == node.text.count(")")
        return f"write [{', '.join(numbers)}]" if numbers and whole else "write the numbers in brackets, as in [3, 224]"
    if path.rpartition(".")[2] in {"command", "image_entrypoint"}:
        return _argv(node.text)
    return f"write [{node.text if node.plain else quoted(node.text)}]"


def _argv(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError:
        return "write a list with one argument in each element"
    listed = ", ".join(word if _WITHOUT_QUOTES.fullmatch(word) else quoted(word) for word in words)
    return f"write [{listed}], or use script for shell text"


def _mount(text: str) -> str | None:
    """Return Compose's and docker's short form `source:target[:ro]` as a mapping."""
    match = re.fullmatch(r"([^:\s,]+):(/[^:\s,]*)(:ro)?(?::rw)?", text)
    if not match:
        return None
    source, target, read_only = match.groups()
    kind = "bind" if source.startswith((".", "/", "~")) else "volume"
    return f"{{type: {kind}, source: {source}, target: {target}{', read_only: true' if read_only else ''}}}"


def _batch_bytes(node: ScalarNode, path: str) -> str | None:
    sized = path.rpartition(".")[2] == "batch_bytes" and re.fullmatch(r"[0-9]+(?:Ki|Mi|Gi|[kmg])", node.text)
    return f"write {{size: {node.text}, tensors: 1}}, with the number of tensors in a batch" if sized else None


def _from_list(type_: Type, node: SequenceNode, path: str) -> str | None:
    texts = [each.text for each in node.items if isinstance(each, ScalarNode)]
    if path == "script":
        return "write script: |, and the lines below it, indented and without dashes"
    if type_.kind != "map" or len(texts) != len(node.items) or not 0 < len(texts) < _MAX_ITEMS:
        return None
    if path == "secrets":  # nothing is repeated: someone may have put the secrets themselves there
        return "write {NAME: {env: NAME}}"
    if type_.inner.kind == "object":
        pairs = [f"{each}: {{}}" for each in texts]
    else:
        pairs = [
            f"{name}: {quoted(value)}" for name, equals, value in (each.partition("=") for each in texts) if equals
        ]
    return f"write {{{', '.join(pairs)}}}" if len(pairs) == len(texts) else None


def _from_mapping(type_: Type, node: MappingNode) -> str | None:
    if type_.kind == "list" and type_.inner.kind == "object" and node.items:
        return "put it in a list: write [ before it and ] after it, or start it with '- '"
    if type_.kind != "text" or len(node.items) != 1:
        return None
    name, (_, value) = next(iter(node.items.items()))
    if not isinstance(value, ScalarNode):
        return None
    return f"put it in double quotes: {quoted(f'{{{name}}}' if value.null else f'{name}: {value.text}')}"


def _example(type_: Type) -> str:
    """Return a mapping that reads: the required fields, else the first that has a default, else none."""
    required = [f"{each.name}: {each.example}" for each in type_.fields if each.required]
    if required:
        return f"a mapping, {{{', '.join(required)}}}"
    first = next(iter(type_.fields), None)
    if first is None:
        return "a mapping, {name: value}"
    known = f"{first.name}: {spell(first.type, first.default)}" if isinstance(first.default, (int, str)) else ""
    return f"a mapping, {{{known}}}" if known else "{}"
