"""Conditions on the operating system, as Linux decides them: in a container nothing else runs."""

from __future__ import annotations

import ast
import re

_ON_LINUX = {"os.name": "posix", "sys.platform": "linux", "platform.system()": "Linux"}
_DEVICE = re.compile(r"(?:self\.)?device(?:\.type)?")


def on_linux(node: ast.IfExp) -> ast.expr | None:
    """Return the branch that is taken where nothing but the system decides; None where something else does."""
    test, holds = node.test, None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        name, other = _value_of(test.left), _literal(test.comparators[0])
        if isinstance(test.ops[0], (ast.Eq, ast.NotEq)) and isinstance(other, str):
            same = name == other if name else False if other == "mps" and _is_device(test.left) else None
            holds = None if same is None else same is isinstance(test.ops[0], ast.Eq)
        elif isinstance(test.ops[0], (ast.In, ast.NotIn)) and name and isinstance(other, (tuple, list, set)):
            holds = (name in other) is isinstance(test.ops[0], ast.In)
    elif isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr == "startswith":
        name, start = _value_of(test.func.value), _literal(test.args[0]) if test.args else None
        holds = name.startswith(start) if name and isinstance(start, (str, tuple)) else None
    return None if holds is None else node.body if holds else node.orelse


def _value_of(node: ast.expr) -> str:
    """Return what a name of the system is on Linux, empty for any other expression."""
    text = ast.unparse(node)
    value = _ON_LINUX.get(text.removesuffix(".lower()"), "")
    return value.lower() if text.endswith(".lower()") else value


def _is_device(node: ast.expr) -> bool:
    return _DEVICE.fullmatch(ast.unparse(node)) is not None


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
