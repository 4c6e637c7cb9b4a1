"""Compose files and manifests, each container with its nodes and the edits that size its /dev/shm."""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from typing import Any

from trainlaunch.diagnostics import Edit
from trainlaunch.formats.compose.read import read_documents
from trainlaunch.formats.docker.shell_lexer import statements
from trainlaunch.formats.kubernetes import containers_of
from trainlaunch.formats.kubernetes.objects import read_object
from trainlaunch.lint.compose_layers import extended, overridden, sizes_beside
from trainlaunch.lint.dotenv import filled, values_beside
from trainlaunch.lint.edits import Budget, yaml_edits
from trainlaunch.rules.sources.container_facts import engine_text
from trainlaunch.rules.sources.programs import Argv
from trainlaunch.rules.sources.source_text import (
    COMPOSE,
    KUBERNETES,
    SourceContainer,
    SourceText,
    at,
    items_in,
    text_at,
)
from trainlaunch.rules.sources.training_commands import SHELLS, argv_of, argvs_of, commands_in
from trainlaunch.units import format_size
from trainlaunch.yamltree.changes import Change, Insert, Set
from trainlaunch.yamltree.tolerant import Documents, Mapping, Node, Scalar, Sequence, Source

Path = tuple[str | int, ...]
Adds = Callable[[int], tuple[Edit, ...]]
VOLUME = "dshm"


def read_compose_file(text: str, name: str, found: Documents) -> SourceText:
    """Return the services of a Compose file, as its override changes them."""
    values = values_beside(FilePath(name)) if "$" in text and name != "-" else {}
    if values:
        found = found._replace(nodes=tuple(filled(each, values) for each in found.nodes))
    roots = [(index, each) for index, each in enumerate(found.nodes) if isinstance(each, Mapping)]
    containers = []
    budget, beside = Budget(text), sizes_beside(FilePath(name)) if name.endswith((".yml", ".yaml")) else frozenset()
    for read in read_documents(overridden(found, name), functools.partial(extended, name)):
        service = read.place.removeprefix("services.")
        named = (
            (index, services.keys[service], services.items[service])
            for index, root in reversed(roots)
            if isinstance(services := at(root, "services"), Mapping) and service in services.items
        )
        found_here = next(named, None)
        if found_here is None:
            continue  # the override's alone
        document, key, node = found_here
        own = node if isinstance(node, Mapping) else None
        workload = read._replace(span=key.span)  # an override's own is of another text
        add = _service_adds(text, name, document, service)
        argv = argv_of(workload, _words(own, "entrypoint"), _words(own, "command"))
        made = SourceContainer(workload, argvs_of(argv), own, add_shm=_within(budget, add), argv=argv)
        containers.append(made._replace(sized_beside=service in beside))
    return SourceText(COMPOSE, text, Source(text, name), tuple(containers), found.nodes)


def _within(budget: Budget, add: Adds | None) -> Adds | None:
    """Return `add` as long as the budget lasts; afterwards it has no edits."""
    return None if add is None else lambda size: add(size) if budget.spend() else ()


def _service_adds(text: str, name: str, document: int, service: str) -> Adds:
    def add(size: int) -> tuple[Edit, ...]:
        return yaml_edits(text, name, [Set(("services", service, "shm_size"), f"{engine_text(size)}b")], document)

    return add


def read_kubernetes_file(text: str, name: str, found: Documents) -> SourceText:
    """Return the containers of every pod of a text of manifests."""
    budget = Budget(text)
    containers = [
        each._replace(add_shm=_within(budget, each.add_shm))
        for document, root in enumerate(found.nodes)
        for path, node in _objects(root, ())
        for each in _containers(text, name, document, path, node)
    ]
    return SourceText(KUBERNETES, text, Source(text, name), tuple(containers), found.nodes)


def _objects(node: Node, path: Path) -> Iterator[tuple[Path, Node]]:
    items = at(node, "items")
    if (text_at(node, "kind") or "").endswith("List") and isinstance(items, Sequence):
        for index, each in enumerate(items.items):
            yield from _objects(each, (*path, "items", index))
    else:
        yield path, node


def _containers(text: str, name: str, document: int, path: Path, node: Node) -> Iterator[SourceContainer]:
    for found in read_object(node, final=False):
        for inner, place, workload in containers_of(found):
            pod = at(node, *inner)
            own = at(pod, *_steps(place))
            if not isinstance(pod, Mapping):
                continue
            add = _pod_adds(text, name, document, pod, ((*path, *inner), _steps(place)))
            mapping = own if isinstance(own, Mapping) else None
            argv = argv_of(workload, _words(mapping, "command"), _words(mapping, "args"))
            yield SourceContainer(workload, _argvs(argv, mapping), mapping, pod, found.kind, add, argv=argv)


def _argvs(argv: Argv, own: Mapping | None) -> tuple[Argv, ...]:
    """Return what a container runs; one of Argo's with a `source` runs that, if its command is a shell."""
    source = text_at(own, "source")
    if source is None:
        return argvs_of(argv)
    return commands_in(source) if argv and posixpath.basename(argv[0]) in SHELLS else ()


def _words(own: Mapping | None, key: str) -> Argv:
    """Return the words of a command as they are written, whatever replaces a part of them later."""
    node = at(own, key)
    if isinstance(node, Scalar):
        return tuple(word for words in statements(node.text) for word in words)
    return tuple(each.text for each in items_in(node) if isinstance(each, Scalar))


def _steps(place: str) -> Path:
    """Return the keys and indexes of a place like `containerSet.containers[0]`."""
    steps: list[str | int] = []
    for part in place.split("."):
        key, bracket, index = part.partition("[")
        steps += [key, int(index.rstrip("]"))] if bracket else [key]
    return tuple(steps)


def _pod_adds(text: str, name: str, document: int, pod: Mapping, paths: tuple[Path, Path]) -> Adds:
    pod_path, steps = paths

    def add(size: int) -> tuple[Edit, ...]:
        volumes, mounts = at(pod, "volumes"), at(pod, *steps, "volumeMounts")
        taken = isinstance(volumes, Sequence) and any(text_at(each, "name") == VOLUME for each in volumes.items)
        volume: dict[str, Any] = {"name": VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": format_size(size)}}
        changes = [_appended((*pod_path, *steps, "volumeMounts"), mounts, {"name": VOLUME, "mountPath": "/dev/shm"})]
        if not taken:
            changes.append(_appended((*pod_path, "volumes"), volumes, volume))
        elif not _is_sized_memory(volumes):
            return ()
        return yaml_edits(text, name, changes, document)

    return add


def _appended(path: Path, listed: Node | None, value: dict[str, Any]) -> Change:
    if isinstance(listed, Sequence):
        return Insert((*path, len(listed.items)), value)
    return Set(path, [value])


def _is_sized_memory(volumes: Node | None) -> bool:
    named = [each for each in items_in(volumes) if text_at(each, "name") == VOLUME]
    return all(
        text_at(each, "emptyDir", "medium") == "Memory" and isinstance(at(each, "emptyDir", "sizeLimit"), Scalar)
        for each in named
    )
