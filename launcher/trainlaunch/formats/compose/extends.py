"""A service over those that it extends, of its own file or of another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from trainlaunch.formats.compose.layers import Layers
from trainlaunch.formats.compose.values import literal, spelled, unknown
from trainlaunch.formats.workload import Unknown
from trainlaunch.yamltree.documents import Documents, Mapping, Node, Scalar

Files: TypeAlias = Callable[[str, str], "Documents | None"]  # a path, and the file that names it; None: it isn't read
_MOST_EXTENDED = 50


def no_files(_path: str, _named_by: str) -> None:
    """Read no other file."""


def services_of(found: Documents) -> tuple[Layers, Layers]:
    """Return what documents say together, a later one over an earlier one, and the services in it."""
    document = Layers(tuple(each for each in reversed(found.nodes) if isinstance(each, Mapping)))
    return document, document.below("services")


def extended(name: str, services: Layers, files: Files) -> tuple[Layers, Unknown | None]:
    """Return a service over those that it extends, and the reference to one that is in no text that is read."""
    mappings: list[Mapping] = []
    seen: set[tuple[int, str]] = set()
    read = {"": services}
    while (id(services), name) not in seen and len(seen) < _MOST_EXTENDED:
        seen.add((id(services), name))
        own = services.below(name)
        mappings += own.mappings
        base = own.get("extends")
        if base is None:
            break
        reference = Layers((base,)) if isinstance(base, Mapping) else None
        elsewhere = reference.get("file") if reference else None
        name = _literal(reference.get("service") if reference else base)
        found = services if elsewhere is None else _of_file(elsewhere, files, read)
        if found is None or name not in found.names():
            return Layers(tuple(mappings)), unknown(base)
        services = found
    return Layers(tuple(mappings)), None


def _of_file(named: Node, files: Files, read: dict[str, Layers]) -> Layers | None:
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
