"""The objects of a text, and the pods that each of them makes, whatever its kind: a Workload a container."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from trainlaunch.formats.kubernetes.containers import PodValues, read_container
from trainlaunch.formats.kubernetes.fields import Fields, leaves, odd_keys, text_of
from trainlaunch.formats.kubernetes.volumes import Volume, claims, read_volumes
from trainlaunch.formats.workload import Known, Value, Workload
from trainlaunch.yamltree.scalars import value_of
from trainlaunch.yamltree.tolerant import Mapping as MappingNode
from trainlaunch.yamltree.tolerant import Node, Scalar, Sequence

Path: TypeAlias = tuple[str | int, ...]
# What a controller merges into pods that stand elsewhere, and what a cluster writes.
_NO_PODS = frozenset({"status", "podSpecOverrides", "podTemplateOverrides", "runtimePatches", "managedFields"})
_COMMON = frozenset({"spec", "template"})  # words of a path that tell no pod from another

_LISTS = ("initContainers", "containers", "sidecars")  # sidecars: Argo's
_SINGLE = ("container", "script")  # of Argo's templates that have one container
ALONE = (*_SINGLE, "containerSet")  # what makes one of Argo's templates a pod


class PodPlace(NamedTuple):
    """A pod and where it stands in its object: the keys and indexes down to the mapping that holds its containers."""

    path: Path
    pod: PodWorkloads


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
    name = metadata.pop_str("name") or text_of(metadata.peek("generateName"), final=final)
    labels = metadata.within("labels")
    texts = {key: value for key in labels.names() if (value := labels.pop_str(key)) is not None}
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


class PodWorkloads(NamedTuple):
    """The containers of a pod in their order, with `place` as `containers[0]`, and what else it says.

    The rest of each container is its own, and the pod's is `rest`.
    """

    workloads: tuple[Workload, ...]
    rest: dict[str, object]


def read_pod(node: Node, outer: Mapping[str, Volume], *, final: bool) -> PodWorkloads:
    """Read a pod's spec; `outer` are volumes that the objects around it give it."""
    pod = Fields(node, final=final)
    listed = pod.peek("volumes")
    own = read_volumes(listed, final=final) if isinstance(listed, Sequence) else {}
    values = _pod_values(pod, {**outer, **own})
    workloads: list[Workload] = []
    mounted: set[str] = set()
    odd: dict[str, object] = {}
    for place, each in _containers(pod):
        if isinstance(each, MappingNode):
            workload, names = read_container(each, values, final=final)
            workloads.append(workload._replace(place=place))
            mounted |= names
        else:
            odd[f"pod.{place}"] = each.raw
    if isinstance(listed, Sequence):
        pod.take("volumes")
        odd.update(_idle(listed, own, mounted))
    if values.host_ipc is not None:
        odd["pod.hostIPC"] = values.host_ipc.value if isinstance(values.host_ipc, Known) else values.host_ipc.text
    return PodWorkloads(tuple(workloads), {**dict(pod.rest("pod")), **odd})


def _containers(pod: Fields) -> Iterator[tuple[str, Node]]:
    """Take each container with its place, those that run before the others first."""
    for key in _LISTS:
        listed = pod.peek(key)
        if isinstance(listed, Sequence):
            pod.take(key)
            yield from ((f"{key}[{index}]", each) for index, each in enumerate(listed.items))
    for key in _SINGLE:
        if isinstance(pod.peek(key), MappingNode) and (found := pod.take(key)) is not None:
            yield key, found
    in_set = pod.within("containerSet")
    listed = in_set.take("containers")
    if isinstance(listed, Sequence):
        yield from ((f"containerSet.containers[{index}]", each) for index, each in enumerate(listed.items))


def _pod_values(pod: Fields, volumes: Mapping[str, Volume]) -> PodValues:
    """Take what holds for all containers; what is no list of numbers, and the pod's own limits, stay."""
    security = pod.within("securityContext")
    limits = Fields(Fields(pod.peek("resources"), final=True).peek("limits"), final=True)
    groups = security.peek("supplementalGroups")
    numbers = (
        [value_of(each) for each in groups.items if isinstance(each, Scalar)] if isinstance(groups, Sequence) else []
    )
    if isinstance(groups, Sequence) and len(numbers) == len(groups.items):
        security.take("supplementalGroups")
    else:
        numbers = []
    return PodValues(
        uid=security.take("runAsUser"),
        gid=security.take("runAsGroup"),
        groups=tuple(str(each) for each in numbers),
        stop_timeout=pod.pop_int("terminationGracePeriodSeconds"),
        memory=limits.quantity("memory"),
        cpus=limits.quantity("cpu", milli=True),
        host_ipc=pod.pop_bool("hostIPC"),
        volumes=volumes,
    )


def _idle(listed: Sequence, read: Mapping[str, Volume], mounted: set[str]) -> Iterator[tuple[str, object]]:
    """Yield the volumes that no container mounts, and those that share a name with a later one."""
    used = {volume.place for name, volume in read.items() if name in mounted}
    for index, each in enumerate(listed.items):
        if index not in used:
            if not isinstance(each, MappingNode):
                yield f"pod.volumes.{index}", each.raw
            yield from leaves(each, f"pod.volumes.{index}")
