"""Variables and labels of a Compose service, as a mapping or as a list."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.formats.compose.layers import Layers, is_null, part_of
from trainlaunch.formats.compose.values import known, literal, required, spelled, unknown
from trainlaunch.formats.workload import Value
from trainlaunch.yamltree.documents import Mapping, Node, Scalar, Sequence


class Environment(NamedTuple):
    """Variables by name; `secrets` are those that name a variable of the shell and stop where it is not set."""

    env: dict[str, Value[str]]
    secrets: dict[str, str]


def read_environment(service: Layers) -> Environment:
    """Return the variables; one without a value has that of the shell, so it is Unknown."""
    env: dict[str, Value[str]] = {}
    secrets: dict[str, str] = {}
    for node in reversed(service.stack("environment")):
        for name, value, scalar in _pairs(node):
            source = None if value is None else required(value)
            secrets.pop(name, None)
            env.pop(name, None)
            if source is not None:
                secrets[name] = source
            else:
                env[name] = unknown(scalar) if value is None else _value(scalar, value)
    return Environment(env, secrets)


def read_labels(service: Layers) -> dict[str, Value[str]]:
    """Return the labels; one without a value is empty."""
    return {
        name: _value(scalar, value or "")
        for node in reversed(service.stack("labels"))
        for name, value, scalar in _pairs(node)
    }


def _pairs(node: Node) -> list[tuple[str, str | None, Node]]:
    """Return each name with its value before interpolation, None where it has none, and the node that says it."""
    if isinstance(node, Mapping):
        return [
            (name, _text(value), node.keys[name] if is_null(value) else value) for name, value in node.items.items()
        ]
    found: list[tuple[str, str | None, Node]] = []
    for item in node.items if isinstance(node, Sequence) else ():
        if isinstance(item, Scalar) and not is_null(item):
            name, equals, value = spelled(item).partition("=")
            found.append((name, value if equals else None, item))
    return found


def _text(value: Node) -> str | None:
    if is_null(value):
        return None
    return spelled(value) if isinstance(value, Scalar) else "${}"  # Compose takes neither


def _value(node: Node, text: str) -> Value[str]:
    """Return a value: all of its node in a mapping, what stands behind the `=` in a list."""
    value = literal(text)
    if value is None or not isinstance(node, Scalar):
        return unknown(node)
    if spelled(node) == text:
        return known(value, node)
    place = part_of(node, text, after="=")
    return known(value, node) if place.text == node.raw else type(place)(value, place.text, place.span)
