"""What a scalar means to the targets' own readers of YAML: go-yaml v3 in Compose, v2 in kubectl."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from trainlaunch.yamltree.tolerant import Mapping, Node, Scalar, Sequence, documents

Value: TypeAlias = str | int | float | bool | None

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_WORDS: dict[str, Value] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{each: float("nan") for each in (".nan", ".NaN", ".NAN")},
    **{sign + each: float("inf") for sign in ("", "+") for each in (".inf", ".Inf", ".INF")},
    **{each: float("-inf") for each in ("-.inf", "-.Inf", "-.INF")},
}
# YAML 1.1 alone, so kubectl alone.
_WORDS_11: dict[str, Value] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INT = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_MAX_INTEGER = 2**64  # go-yaml takes what is no uint64 for a float
_MAX_NUMBER_LENGTH = 400


def value_of(scalar: Scalar, *, yaml11: bool = False) -> Value:
    """Return the value of a scalar: of a plain one, what its spelling and tag make it; a timestamp stays a string.

    `yaml11` takes `yes`, `off`, `y` … for truth values, as kubectl does and Compose doesn't.
    """
    tag = (scalar.tag or "").removeprefix("tag:yaml.org,2002:")
    if tag in ("str", "binary", "!"):
        return scalar.text
    if scalar.plain or tag in ("int", "float", "bool", "null"):
        value = plain_value(scalar.text, yaml11=yaml11)
        return float(value) if tag == "float" and type(value) is int else value
    return scalar.text


def plain_value(text: str, *, yaml11: bool = False) -> Value:
    """Return what a plain scalar of this spelling means."""
    if text in _NULLS:
        return None
    if text in _WORDS:
        return _WORDS[text]
    if yaml11 and text in _WORDS_11:
        return _WORDS_11[text]
    if text[0] in "+-.0123456789" and len(text) <= _MAX_NUMBER_LENGTH:
        number = _number(text if text[0] == "." else text.replace("_", ""))
        return text if number is None else number
    return text


def _number(text: str) -> int | float | None:
    match = _INT.fullmatch(text)
    if match:
        sign, *digits = match.groups()
        number = next(int(each, base) for each, base in zip(digits, (16, 2, 8, 10), strict=True) if each is not None)
        number = -number if sign == "-" else number
        if -_MAX_INTEGER // 2 <= number < _MAX_INTEGER:
            return number
    if not re.fullmatch(_FLOAT, text):
        return None
    value = float(text)
    return None if value in (float("inf"), float("-inf")) else value


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
