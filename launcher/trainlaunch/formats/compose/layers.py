"""A mapping that several mappings make together: a service over what it extends, one document over another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from trainlaunch.formats.compose.values import literal, plain, spelled, unknown
from trainlaunch.formats.workload import Known, Unknown
from trainlaunch.yamltree.scalars import value_of
from trainlaunch.yamltree.tolerant import Documents, Mapping, Node, Scalar, Sequence

Files: TypeAlias = Callable[[str, str], "Documents | None"]  # a path, and the file that names it; None: it isn't read
_MAX_EXTENDED = 50


class MappingLayers:
    """Mappings over each other, the one that wins first. A null says nothing, as Compose takes it."""

    def __init__(self, mappings: tuple[Mapping, ...]) -> None:
        self.mappings = mappings

    def names(self) -> tuple[str, ...]:
        """Return the keys, those of the lowest layer first."""
        return tuple(dict.fromkeys(name for each in reversed(self.mappings) for name in each.items))

    def key(self, name: str) -> Scalar:
        """Return the key as the highest layer that has it writes it; raises KeyError where none has it."""
        return next(each.keys[name] for each in self.mappings if name in each.keys)

    def stack(self, name: str) -> tuple[Node, ...]:
        """Return what the layers say of a key, the winner first; `!reset` and `!override` hide those below."""
        found: list[Node] = []
        for each in self.mappings:
            node = each.items.get(name)
            if node is not None and node.tag == "!reset":
                break
            if node is None or is_null(node):
                continue
            found.append(node)
            if node.tag == "!override":
                break
        return tuple(found)

    def get(self, name: str) -> Node | None:
        """Return the value of a key that wins; None where none is said."""
        return next(iter(self.stack(name)), None)

    def below(self, name: str) -> MappingLayers:
        """Return the mappings at a key."""
        return MappingLayers(tuple(each for each in self.stack(name) if isinstance(each, Mapping)))

    def value(self, name: str) -> object:
        """Return what the layers say of a key together as Python values: mappings merged, lists one after the other."""
        found = self.stack(name)
        if len(found) > 1 and all(isinstance(each, Mapping) for each in found):
            inner = self.below(name)
            return {each: inner.value(each) for each in inner.names()}
        if len(found) > 1 and all(isinstance(each, Sequence) for each in found):
            return [plain(item) for each in reversed(found) if isinstance(each, Sequence) for item in each.items]
        return plain(found[0]) if found else None


def is_null(node: Node) -> bool:
    """Return whether a node is YAML's null."""
    return isinstance(node, Scalar) and not node.text.strip("~nulNUL") and value_of(node) is None


def items_of(node: Node | None) -> tuple[Node, ...]:
    """Return the items of a list, a scalar as the only one."""
    if isinstance(node, Sequence):
        return node.items
    return (node,) if isinstance(node, Scalar) and not is_null(node) else ()


def part_of(node: Scalar, piece: str, *, after: str = "") -> Known[str]:
    """Return a piece of a scalar with its own place, or the scalar's where its spelling doesn't show it once."""
    if piece and node.raw.count(after + piece) == 1:
        start = node.start + node.raw.index(after + piece) + len(after)
        return Known(piece, piece, node.source.span(start, start + len(piece)))
    return Known(piece, node.raw, node)


def no_files(_path: str, _named_by: str) -> None:
    """Read no other file."""


def services_of(found: Documents) -> tuple[MappingLayers, MappingLayers]:
    """Return what documents say together, a later one over an earlier one, and the services in it."""
    document = MappingLayers(tuple(each for each in reversed(found.nodes) if isinstance(each, Mapping)))
    return document, document.below("services")


def extended(name: str, services: MappingLayers, files: Files) -> tuple[MappingLayers, Unknown | None]:
    """Return a service over those that it extends, and the reference to one that is in no text that is read."""
    mappings: list[Mapping] = []
    seen: set[tuple[int, str]] = set()
    read = {"": services}
    while (id(services), name) not in seen and len(seen) < _MAX_EXTENDED:
        seen.add((id(services), name))
        own = services.below(name)
        mappings += own.mappings
        base = own.get("extends")
        if base is None:
            break
        reference = MappingLayers((base,)) if isinstance(base, Mapping) else None
        elsewhere = reference.get("file") if reference else None
        name = _literal(reference.get("service") if reference else base)
        found = services if elsewhere is None else _of_file(elsewhere, files, read)
        if found is None or name not in found.names():
            return MappingLayers(tuple(mappings)), unknown(base)
        services = found
    return MappingLayers(tuple(mappings)), None


def _of_file(named: Node, files: Files, read: dict[str, MappingLayers]) -> MappingLayers | None:
    """Return the services of a file, the same for the same file."""
    path = _literal(named)
    found = files(path, named.source.file) if path else None
    if found is None or found.broken is not None:
        return None
    file = next((each.source.file for each in found.nodes), "")
    return read.setdefault(file, services_of(found)[1])


def _literal(node: Node | None) -> str:
    """Return a scalar's text; empty for one that a variable decides, and for anything else."""
    return (literal(spelled(node)) if isinstance(node, Scalar) else None) or ""
