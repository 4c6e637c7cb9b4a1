"""Values in a target's own language: YAML as JSON, without the spellings that readers of YAML take differently."""

from __future__ import annotations

import re
from typing import Any

from trainlaunch.diagnostics import Report
from trainlaunch.job.values.scalars import BAD, quoted
from trainlaunch.yamltree.source import MappingNode, Node, Scalar, SequenceNode

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_FRACTION = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_BOOLEANS = {"true": True, "false": False}
# Numbers, booleans and nothing in YAML 1.1, 1.2 or another reader, strings in the rest.
_LOOK_ALIKE = re.compile(
    r"(?i)y|yes|n|no|on|off|true|false|[-+]?\.(?:inf|nan)|[-+]?0[xob][0-9a-f_]+|[-+]?[0-9][0-9_,]*(?::[0-5]?[0-9])*"
    r"|[-+]?[0-9_]*(?:\.[0-9_]*)?(?:e[-+]?[0-9]+)?|=|<<|\?|-|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?"
)


def plain_value(node: Node, path: str, report: Report) -> Any:
    """Return `node` as dicts, lists, strings, numbers, booleans and None; an ambiguous scalar is put in `report`."""
    if isinstance(node, MappingNode):
        return {name: plain_value(value, f"{path}.{name}", report) for name, (_, value) in node.items.items()}
    if isinstance(node, SequenceNode):
        return [plain_value(each, f"{path}.{index}", report) for index, each in enumerate(node.items)]
    return _scalar(node, path, report)


def _scalar(node: Scalar, path: str, report: Report) -> Any:
    if not node.plain:
        return node.text
    if node.null:
        return None
    if node.text in _BOOLEANS:
        return _BOOLEANS[node.text]
    if _INTEGER.fullmatch(node.text):
        return int(node.text)
    if _FRACTION.fullmatch(node.text):
        return float(node.text)
    if _LOOK_ALIKE.fullmatch(node.text):
        report.add(
            "TL105",
            node,
            message=f"{path} is {node.text}, which one reader of YAML takes for a string and another doesn't",
            fix=f"write {quoted(node.text)} for the string, or a number in plain digits, true or false",
            field=path,
        )
        return BAD
    return node.text
