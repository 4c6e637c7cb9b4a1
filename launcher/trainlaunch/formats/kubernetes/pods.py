"""A pod's spec, as a Workload for each of its containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from trainlaunch.formats.kubernetes.containers import PodValues, read_container
from trainlaunch.formats.kubernetes.fields import Fields, leaves
from trainlaunch.formats.kubernetes.volumes import Volume, read_volumes
from trainlaunch.formats.workload import Known, Workload
from trainlaunch.yamltree.documents import Mapping as MappingNode
from trainlaunch.yamltree.documents import Node, Scalar, Sequence
from trainlaunch.yamltree.scalars import value_of

_LISTS = ("initContainers", "containers", "sidecars")  # sidecars: Argo's
_SINGLE = ("container", "script")  # of Argo's templates that have one container
ALONE = (*_SINGLE, "containerSet")  # what makes one of Argo's templates a pod


class Pod(NamedTuple):
    """The containers of a pod in their order, with `place` as `containers[0]`, and what else it says.

    The rest of each container is its own, and the pod's is `rest`.
    """

    workloads: tuple[Workload, ...]
    rest: dict[str, object]


def read_pod(node: Node, outer: Mapping[str, Volume], *, final: bool) -> Pod:
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
    return Pod(tuple(workloads), {**dict(pod.rest("pod")), **odd})


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
        stop_timeout=pod.whole("terminationGracePeriodSeconds"),
        memory=limits.quantity("memory"),
        cpus=limits.quantity("cpu", milli=True),
        host_ipc=pod.flag("hostIPC"),
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
