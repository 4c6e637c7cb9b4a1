"""Writes plain values as the templates do: strings double-quoted or literal blocks, one value a line, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from launcher.render.quoting import yaml_string, yaml_text

_STEP = 2
_PLAIN_KEY = re.compile(r"(?!(?i:y|n|yes|no|on|off|true|false|null)$)[A-Za-z_][A-Za-z0-9_-]*")


def yaml_document(value: dict[str, Any]) -> str:
    """Return a mapping as YAML text that every reader takes for the same value."""
    return "".join(f"{line}\n" for line in _mapping(value, 0))


def _mapping(value: dict[str, Any], indent: int) -> Iterator[str]:
    for key, item in value.items():
        name = key if _PLAIN_KEY.fullmatch(key) else yaml_string(key)
        if _is_block(item):
            yield f"{' ' * indent}{name}:"
            yield from _block(item, indent + _STEP)
        else:
            yield f"{' ' * indent}{name}: {_scalar(item, indent + _STEP)}"


def _block(value: dict[str, Any] | list[Any], indent: int) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _mapping(value, indent)
        return
    for item in value:
        if _is_block(item):
            first, *rest = _block(item, indent + _STEP)
            yield f"{' ' * indent}- {first[indent + _STEP :]}"
            yield from rest
        else:
            yield f"{' ' * indent}- {_scalar(item, indent + _STEP)}"


def _is_block(value: Any) -> bool:
    """Return whether a value takes lines of its own; a list of integers stands on one, as in the templates."""
    return isinstance(value, (dict, list)) and bool(value) and not all(type(each) is int for each in value)


def _scalar(value: Any, indent: int) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, str):
        return yaml_text(value, indent)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        text = f"{Decimal(repr(value)):f}"
        return text if "." in text else f"{text}.0"
    return str(value) if isinstance(value, int) else "{}"
