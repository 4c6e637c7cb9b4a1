"""The objects of a text, and the pods that each of them makes, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from trainlaunch.formats.kubernetes.fields import Fields, leaves, odd_keys, text_of
from trainlaunch.formats.kubernetes.pods import ALONE, Pod, read_pod
from trainlaunch.formats.kubernetes.volumes import Volume, claims, read_volumes
from trainlaunch.formats.workload import Known, Value
from trainlaunch.yamltree.documents import Mapping as MappingNode
from trainlaunch.yamltree.documents import Node, Scalar, Sequence

Path: TypeAlias = tuple[str | int, ...]
# What a controller merges into pods that stand elsewhere, and what a cluster writes.
_NO_PODS = frozenset({"status", "podSpecOverrides", "podTemplateOverrides", "runtimePatches", "managedFields"})
_COMMON = frozenset({"spec", "template"})  # words of a path that tell no pod from another


class PodPlace(NamedTuple):
    """A pod and where it stands in its object: the keys and indexes down to the mapping that holds its containers."""

    path: Path
    pod: Pod


class KubernetesObject(NamedTuple):
    """One object; `rest` is what it says beside its name, its labels and its pods, by dotted path."""

    kind: str
    name: Value[str]
    labels: Mapping[str, Value[str]]
    pods: tuple[PodPlace, ...]
    rest: dict[str, object]

    def place(self, path: Path, container: str) -> str:
        """Return what tells one container from all others: `Job/train containers[0]`."""
        name = self.name.value if isinstance(self.name, Known) else self.name.text if self.name else ""
        where = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path if each not in _COMMON)
        head = f"{self.kind}/{name}" if name else self.kind
        return " ".join(each for each in (head, where.lstrip("."), container) if each)


def read_object(node: Node, *, final: bool) -> Iterator[KubernetesObject]:
    """Yield the object of a document, or those of a List; nothing for a document that is no mapping."""
    if not isinstance(node, MappingNode):
        return
    fields = Fields(node, final=final)
    items = fields.peek("items")
    kind = fields.peek("kind")
    word = kind.text if isinstance(kind, Scalar) else ""
    if word.endswith("List") and isinstance(items, Sequence):
        for each in items.items:
            yield from read_object(each, final=final)
        return
    places = tuple(_places(node, (), {}, final=final))
    metadata = fields.within("metadata")
    name = metadata.text("name") or text_of(metadata.peek("generateName"), final=final)
    labels = metadata.within("labels")
    texts = {key: value for key in labels.names() if (value := labels.text(key)) is not None}
    skipped = {("metadata",), *(each.path for each in places)}
    yield KubernetesObject(
        word or "object",
        name,
        texts,
        places,
        {**dict(_around(node, (), skipped)), **dict(metadata.rest("metadata"))},
    )


def _places(node: Node, path: Path, volumes: Mapping[str, Volume], *, final: bool) -> Iterator[PodPlace]:
    """Yield each pod below a node, in their order; `volumes` are what the mappings above it give."""
    if isinstance(node, Sequence):
        for index, each in enumerate(node.items):
            yield from _places(each, (*path, index), volumes, final=final)
    elif isinstance(node, MappingNode):
        if _is_pod(node, path):
            yield PodPlace(path, read_pod(node, volumes, final=final))
            return
        volumes = {**volumes, **_given(node, final=final)}
        for key, value in node.items.items():
            if key not in _NO_PODS and not isinstance(value, Scalar):
                yield from _places(value, (*path, key), volumes, final=final)


def _given(node: MappingNode, *, final: bool) -> dict[str, Volume]:
    """Return the volumes that a StatefulSet or a Workflow gives its pods."""
    listed = node.items.get("volumes")
    own = read_volumes(listed, final=final) if isinstance(listed, Sequence) else {}
    return {**own, **claims(node.items.get("volumeClaimTemplates"), final=final)}


def _is_pod(node: MappingNode, path: Path) -> bool:
    """Return whether a mapping has containers: a pod's spec by its list of them, or one of Argo's templates."""
    listed = node.items.get("containers")
    if isinstance(listed, Sequence):
        return any(isinstance(each, MappingNode) for each in listed.items)
    return path[-2:-1] == ("templates",) and any(isinstance(node.items.get(key), MappingNode) for key in ALONE)


def _around(node: Node, path: Path, skipped: set[Path]) -> Iterator[tuple[str, object]]:
    """Yield each scalar below a node with its dotted path, those below a skipped path left out."""
    if path in skipped:
        return
    if any(each[: len(path)] == path for each in skipped) and not isinstance(node, Scalar):
        keyed = node.items.items() if isinstance(node, MappingNode) else enumerate(node.items)
        for key, value in keyed:
            yield from _around(value, (*path, key), skipped)
        if isinstance(node, MappingNode):
            yield from odd_keys(node, _dotted(path))
    else:
        yield from leaves(node, _dotted(path))


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))
