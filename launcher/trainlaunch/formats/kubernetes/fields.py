"""The values of one mapping while it is read: what a reader takes is gone, and the rest can be listed by path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from trainlaunch.formats.quantities import parse_milli_quantity, parse_quantity, quantity_text
from trainlaunch.formats.workload import Known, Unknown, Value
from trainlaunch.yamltree.scalars import value_of
from trainlaunch.yamltree.tolerant import Mapping, Node, Scalar

T = TypeVar("T")


class Fields:
    """What of a mapping nobody has read yet; empty for anything that is no mapping.

    A list or mapping that is asked for and isn't one stays where it is, so that it shows up in the rest. What is taken
    and Kubernetes would refuse shows up there too, as `refused PATH`.
    `final` says that nothing expands the text before Kubernetes gets it, so that `{{` is no template.
    """

    __slots__ = ("_final", "_left", "_refused", "node")

    def __init__(self, node: Node | None, *, final: bool) -> None:
        self.node = node
        self._final = final
        self._refused: dict[str, str] = {}
        self._left: dict[str, Node | Fields] = dict(node.items) if isinstance(node, Mapping) else {}

    def __contains__(self, key: str) -> bool:
        return key in self._left

    @property
    def templated(self) -> bool:
        """Whether a template in braces stands for keys: YAML reads those as a key that is a mapping."""
        return isinstance(self.node, Mapping) and any(odd_keys(self.node, ""))

    def peek(self, key: str) -> Node | None:
        """Return a value that nobody has read yet, and leave it."""
        found = self._left.get(key)
        return None if isinstance(found, Fields) else found

    def names(self) -> tuple[str, ...]:
        """Return the keys of what is left."""
        return tuple(self._left)

    def take(self, key: str) -> Node | None:
        """Take a value of whatever shape."""
        found = self._left.pop(key, None)
        return None if isinstance(found, Fields) else found

    def within(self, key: str) -> Fields:
        """Return the mapping at a key; what is not taken of it stays in the rest of this one."""
        found = self._left.get(key)
        if isinstance(found, Fields):
            return found
        fields = Fields(found, final=self._final)
        if isinstance(fields.node, Mapping):
            self._left[key] = fields
        return fields

    def pop_str(self, key: str) -> Value[str]:
        """Take a string. A value of another type, which the API server refuses, is Unknown."""
        return self._judged(key, text_of(self.take(key), final=self._final))

    def pop_int(self, key: str) -> Value[int]:
        """Take an integer."""
        return self._typed(key, int)

    def pop_bool(self, key: str) -> Value[bool]:
        """Take a truth value."""
        return self._typed(key, bool)

    def quantity(self, key: str, *, milli: bool = False) -> Value[int]:
        """Take a quantity, in thousandths if `milli`."""
        return self._judged(key, quantity_of(self.take(key), milli=milli))

    def refuse(self, key: str, raw: str) -> None:
        """Let the rest say that Kubernetes refuses what a key has."""
        self._refused[key] = raw

    def _typed(self, key: str, kind: type[T]) -> Value[T]:
        node = self.take(key)
        if node is None or is_null(node):
            return None
        value = value_of(node, yaml11=True) if isinstance(node, Scalar) else None
        return self._judged(key, Known(value, node.raw, node) if type(value) is kind else unknown(node))

    def _judged(self, key: str, value: Value[T]) -> Value[T]:
        if isinstance(value, Unknown) and (self._final or not templated(value.text)):
            self._refused[key] = value.text
        return value

    def rest(self, path: str) -> Iterator[tuple[str, object]]:
        """Yield each value that is left with its dotted path; empty lists and mappings say nothing."""
        for key, value in self._left.items():
            yield from leaves(value, f"{path}.{key}" if path else key)
        if isinstance(self.node, Mapping) and _has_odd_keys(self.node):
            yield from odd_keys(self.node, path)
        for key, raw in self._refused.items():
            yield f"refused {path}.{key}".replace(" .", " "), raw

    def options(self) -> str:
        """Return what is left as one text, an empty list or mapping too."""
        found = [f"refused {key}={raw}" for key, raw in self._refused.items()]
        for key, value in self._left.items():
            if isinstance(value, Fields):
                found.append(value.options())
            else:
                found += [f"{path}={each}" for path, each in leaves(value, key)] or [f"{key}={value.raw}"]
        return ", ".join(filter(None, found))


def leaves(value: Node | Fields, path: str) -> Iterator[tuple[str, object]]:
    """Yield each scalar below a value with its dotted path, as kubectl's reader understands it."""
    if isinstance(value, Fields):
        yield from value.rest(path)
    elif isinstance(value, Scalar):
        yield path, value_of(value, yaml11=True)
    elif isinstance(value, Mapping):
        for key, item in value.items.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
        if _has_odd_keys(value):
            yield from odd_keys(value, path)
    else:
        for index, each in enumerate(value.items):
            yield from leaves(each, f"{path}.{index}")


def _has_odd_keys(node: Mapping) -> bool:
    return len(node.pairs) != len(node.items)


def odd_keys(node: Mapping, path: str) -> Iterator[tuple[str, object]]:
    """Yield the keys that are lists or mappings, as a template in braces is read, by what was written."""
    for key, _ in node.pairs:
        if not isinstance(key, Scalar):
            yield f"{path}.{key.raw}", None


def is_null(node: Node) -> bool:
    """Return whether a value is YAML's null, which Kubernetes takes for an unset field."""
    return isinstance(node, Scalar) and (node.plain or node.tag is not None) and value_of(node, yaml11=True) is None


def unknown(node: Node) -> Unknown:
    """Return what a text leaves to something else at a node."""
    return Unknown(node.raw, node.span)


def templated(text: str) -> bool:
    """Return whether a text holds what Helm, Argo or a CI system replaces before Kubernetes sees it."""
    return "{{" in text


def text_of(node: Node | None, *, final: bool) -> Value[str]:
    """Return the string of a node: Unknown where a template decides it, or Kubernetes takes it for no string."""
    if node is None:
        return None
    value = value_of(node, yaml11=True) if isinstance(node, Scalar) else node
    if value is None:
        return None
    if not isinstance(value, str) or (not final and templated(value)):
        return unknown(node)
    return Known(value, node.raw, node)


def quantity_of(node: Node | None, *, milli: bool = False) -> Value[int]:
    """Return a quantity, rounded up to whole units or thousandths; Unknown for what is none."""
    if node is None or is_null(node):
        return None
    text = quantity_text(value_of(node, yaml11=True)) if isinstance(node, Scalar) else None
    number = None if text is None else (parse_milli_quantity if milli else parse_quantity)(text)
    return unknown(node) if number is None else Known(number, node.raw, node)
