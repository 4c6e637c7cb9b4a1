"""Single values of a Compose file: interpolation, then what its schema casts a scalar to."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeVar

from trainlaunch.formats.quantities import engine_bytes
from trainlaunch.formats.workload import Known, Unknown, Value
from trainlaunch.yamltree.scalars import value_of
from trainlaunch.yamltree.tolerant import Mapping, Node, Scalar, Sequence

T = TypeVar("T")

_VARIABLE_START = r"\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{)"
_VARIABLE = re.compile(r"\$[A-Za-z_{]")  # once the doubled ones are out
_REQUIRED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):\?[^{}$]*\}")
_CPUS = re.compile(r"\+?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]{1,2})?", re.ASCII | re.I)
_TRUE = frozenset({"true", "y", "yes", "on"})
_FALSE = frozenset({"false", "n", "no", "off"})


def pieces(text: str) -> tuple[tuple[str, bool], ...]:
    """Return the parts of `text` as Compose reads it, each with whether a variable decides it; `$$` is one `$`."""
    if "$" not in text:
        return ((text, False),) if text else ()
    found: list[tuple[str, bool]] = []
    at, literal, start = 0, "", re.compile(_VARIABLE_START)
    while match := start.search(text, at):
        literal += text[at : match.start()]
        if match[1]:
            literal, at = literal + "$", match.end()
            continue
        at = match.end() if match[2] else _brace_end(text, match.end())
        if literal:
            found.append((literal, False))
        found.append((text[match.start() : at], True))
        literal = ""
    literal += text[at:]
    return (*found, (literal, False)) if literal else tuple(found)


def _brace_end(text: str, at: int) -> int:
    """Return where the `${` ends whose inside starts at `at`; defaults may hold variables themselves."""
    depth = 1
    while depth and at < len(text):
        if text.startswith("${", at):
            depth, at = depth + 1, at + 2
            continue
        depth -= text[at] == "}"
        at += 1
    return at


def literal(text: str) -> str | None:
    """Return `text` as Compose passes it on, None where a variable decides it."""
    if "$" not in text:
        return text
    return None if _VARIABLE.search(text.replace("$$", "")) else text.replace("$$", "$")


def readable(text: str) -> str:
    """Return `text` as Compose passes it on; a variable, whose value no file can tell, reads as `<variable …>`."""
    whole = literal(text)
    if whole is not None:
        return whole
    return "".join(f"<variable {part[1:]}>" if variable else part for part, variable in pieces(text))


def required(text: str) -> str | None:
    """Return the variable that `text` asks for and stops without, as in `${NAME:?why}`; None for any other text."""
    match = _REQUIRED.fullmatch(text)
    return match[1] if match else None


def spelled(scalar: Scalar) -> str:
    """Return a scalar as Go prints its value: `1.0` is `1`, `0o17` is `15`, and null is empty."""
    value = value_of(scalar)
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _go_float(value)
    return "" if value is None else str(value)


def _go_float(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    exact = (f"{value:.{digits}e}" for digits in range(17))
    shortest = next(each for each in exact if float(each) == value)
    # Go's %v: plain from 0.0001 to below a million.
    return repr(value).removesuffix(".0") if -5 < int(shortest.partition("e")[2]) < 6 else shortest


def known(value: T, node: Node) -> Known[T]:
    """Return a value that a node sets."""
    return Known(value, node.raw, node)


def unknown(node: Node) -> Unknown:
    """Return that a node leaves its value to something else, or holds one that Compose refuses."""
    return Unknown(node.raw, node.span)


def read_string(node: Node) -> Value[str]:
    """Return a string; Unknown where a variable decides it or a collection stands.

    Compose refuses a number here; what somebody wrote is then what was meant.
    """
    if not isinstance(node, Scalar):
        return unknown(node)
    text = literal(node.text)
    return unknown(node) if text is None else known(text, node)


def read_with(node: Node, parse: Callable[[str], T | None]) -> Value[T]:
    """Return what `parse` makes of a string; Unknown for None."""
    text = literal(spelled(node)) if isinstance(node, Scalar) else None
    value = None if text is None else parse(text)
    return unknown(node) if value is None else known(value, node)


def read_size(node: Node) -> Value[int]:
    """Return the bytes of a size. An unquoted float is none: Compose drops it (`ignored_size` gives it)."""
    value = value_of(node) if isinstance(node, Scalar) else ""
    if type(value) is int:
        return known(value, node) if value >= 0 else unknown(node)
    return read_with(node, engine_bytes) if isinstance(value, str) else unknown(node)


def ignored_size(node: Node) -> Value[int]:
    """Return the bytes of a size that Compose leaves out without a word: 0, and every unquoted float."""
    value = value_of(node) if isinstance(node, Scalar) else None
    if type(value) is float and math.isfinite(value):
        return known(int(value), node)
    size = read_size(node)
    return size if isinstance(size, Known) and size.value == 0 else None


def read_cpus(node: Node) -> Value[int]:
    """Return thousandths of a CPU."""
    return read_with(node, lambda text: round(float(text) * 1000) if _CPUS.fullmatch(text) else None)


def read_int(node: Node) -> Value[int]:
    """Return a whole number, quoted or not."""
    return read_with(node, lambda text: int(text) if re.fullmatch(r"[-+]?[0-9]{1,18}", text, re.ASCII) else None)


def read_bool(node: Node) -> Value[bool]:
    """Return a truth value, quoted or not."""
    return read_with(
        node, lambda text: {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(text.lower())
    )


def plain(node: Node) -> object:
    """Return a node as Python values, each string as `readable` gives it."""
    if isinstance(node, Mapping):
        return {key: plain(value) for key, value in node.items.items()}
    if isinstance(node, Sequence):
        return [plain(each) for each in node.items]
    value = value_of(node)
    return readable(value) if isinstance(value, str) else value
