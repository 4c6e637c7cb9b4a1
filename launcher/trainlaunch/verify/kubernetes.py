"""Reads a manifest back: the objects of its text, as one Workload whose rest says all of them."""

from __future__ import annotations

import re
from pathlib import Path as FilePath

from trainlaunch.formats.kubernetes.objects import KubernetesObject, Path, PodPlace, read_object
from trainlaunch.formats.kubernetes.volumes import UNDECIDED
from trainlaunch.formats.quantities import is_shm
from trainlaunch.formats.workload import ABSENT, SIZE, Known, ShmSetting, Unknown, Value, Workload, stated
from trainlaunch.job.reserved import KUEUE_QUEUE_LABEL
from trainlaunch.kinds import objects
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.verify.expected_workload import PLANNED
from trainlaunch.yamltree.tolerant import Mapping, Node, Sequence, documents

_ENTRY = "container.env."
_NAMELESS = re.compile(r"container\.env\.\d+|pod\.volumes\.\d+|pod\.\w+\[\d+\]")


class UnreadableManifest(ValueError):
    """A text that two readers might take for two things, or that holds something else than whole objects."""


def expected(plan: LaunchPlan, base: FilePath | None) -> Workload:
    """Return what the manifest says when it says what the plan says; it has no path of this host."""
    from trainlaunch.verify.expected_kubernetes import expected_of  # a reader of manifests alone needs none of it

    return expected_of(plan)


def parse_rendering(text: str, folder: FilePath) -> Workload:
    """Return what a manifest says of the first container of its pods; raises UnreadableManifest.

    The last document is the one that runs the job. All its pods must be the same, in the places that their kinds have
    for them, and every other container must see the same /dev/shm.
    """
    *before, main = _objects(text)
    places = [(each.kind, place) for each in (*before, main) for place in each.pods]
    first = places[0][1].pod.workloads if places else (Workload("kubernetes", "", PLANNED),)
    alike = all(_same(place, places[0][1]) for _, place in places)
    number = len(places) if alike else "they differ"
    container, *others = first
    rest = {**main.rest, **(places[0][1].pod.rest if places else {}), **container.rest, "pods": number}
    rest |= _around(before, others)
    rest |= {f"pod in {kind}": f"at {place.path}" for kind, place in places if not _in_place(kind, place.path)}
    rest |= {"queue": _text(main.labels.get(KUEUE_QUEUE_LABEL))}
    _refuse_parts(first, rest)
    twice = {key: Unknown(str(rest.pop(key)), PLANNED) for key in [*rest] if key.startswith(_ENTRY)}
    sizes = {_shm_size(each) for each in first}
    return container._replace(
        name=main.name,
        labels={key: value for key, value in main.labels.items() if key != KUEUE_QUEUE_LABEL},
        env={**container.env, **{key.removeprefix(_ENTRY): value for key, value in twice.items()}},
        shm=container.shm if alike and len(sizes) == 1 and None not in sizes else ShmSetting(ABSENT),
        user=_ids(container.user),
        rest=rest,
    )


def _objects(text: str) -> list[KubernetesObject]:
    """Return the objects of a text, one a document."""
    read = documents(text, "manifest")
    if read.broken:
        raise UnreadableManifest(read.broken.message)
    found: list[KubernetesObject] = []
    for node in read.nodes:
        if not isinstance(node, Mapping) or "items" in node.items:
            raise UnreadableManifest("a document is not an object")
        _refuse_two_readings(node)
        found += read_object(node, final=True)
    if not found:
        raise UnreadableManifest("no document")
    return found


def _refuse_two_readings(root: Node) -> None:
    """Raise UnreadableManifest for what readers of YAML take differently: a key twice, or no string, merges, tags."""
    nodes = [root]
    while nodes:
        node = nodes.pop()
        if node.tag is not None:
            raise UnreadableManifest(f"the tag {node.tag}")
        if isinstance(node, Mapping):
            if len(node.pairs) != len(node.items):
                twice = [f"the key {key.text} twice" for key in node.repeated]
                raise UnreadableManifest(twice[0] if twice else "a key is not a string, or merges a mapping")
            nodes += node.items.values()
        elif isinstance(node, Sequence):
            nodes += node.items


def _refuse_parts(workloads: tuple[Workload, ...], rest: dict[str, object]) -> None:
    """Raise UnreadableManifest where a variable, a volume or a mount lacks its name or place."""
    for key in rest:
        match = _NAMELESS.match(key)
        if match and f"{match[0]}.name" not in rest:
            raise UnreadableManifest(f"{match[0]} has no name")
    for each in workloads:
        if any(mount.target is None or mount.type == UNDECIDED for mount in each.mounts):
            raise UnreadableManifest("a mount without its volume or path")
        if any(isinstance(mount.size, Unknown) for mount in each.mounts):
            raise UnreadableManifest("a sizeLimit that is not a quantity")


def _around(before: list[KubernetesObject], others: list[Workload]) -> dict[str, object]:
    """Return what the objects before the main one say beside their pods, and which containers there are beside one."""
    rest: dict[str, object] = {}
    for index, each in enumerate(before):
        labels = {f"metadata.labels.{key}": _text(value) for key, value in each.labels.items()}
        for key, value in {"metadata.name": _text(each.name), **labels, **each.rest}.items():
            rest[f"before.{index}.{key}"] = value
    for index, other in enumerate(others):
        rest |= {f"others.{index}.place": other.place, f"others.{index}.image": _text(other.image)}
    return rest


def _in_place(kind: str, path: Path) -> bool:
    """Return whether a pod is where its kind has pods; a star is any key or index."""
    known = objects().get(kind)
    if known is None or known.pod_template is None:
        return False
    wanted = (*known.pod_template, "spec")
    return len(wanted) == len(path) and all(want in ("*", have) for want, have in zip(wanted, path, strict=True))


def _same(one: PodPlace, two: PodPlace) -> bool:
    """Return whether two pods say the same, wherever they stand in a text."""
    if one is two:
        return True
    containers = [[_placeless(each) for each in place.pod.workloads] for place in (one, two)]
    return one.pod.rest == two.pod.rest and containers[0] == containers[1]


def _placeless(workload: Workload) -> Workload:
    return workload._replace(span=PLANNED, shm=workload.shm._replace(span=None))


def _shm_size(workload: Workload) -> int | None:
    """Return the size of a container's /dev/shm; None unless it has exactly one, in memory, with a size, writable."""
    mounts = [each for each in workload.mounts if is_shm(stated(each.target) or "/")]
    if len(mounts) != 1 or mounts[0].read_only or mounts[0].options or workload.shm.kind != SIZE:
        return None
    return stated(workload.shm.size)


def _ids(user: Value[str]) -> Value[str]:
    """Return `UID:GID` with its colon, whatever is set."""
    if user is None:
        return Known(":", "", PLANNED)
    return user if isinstance(user, Unknown) or ":" in user.value else Known(f"{user.value}:", user.text, user.span)


def _text(value: Value[str]) -> str | None:
    return f"<{value.text}>" if isinstance(value, Unknown) else stated(value)
