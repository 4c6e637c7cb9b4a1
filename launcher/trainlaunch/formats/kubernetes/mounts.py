"""What a container mounts of its pod's volumes, and what that makes of its /dev/shm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trainlaunch.formats.engine_values import is_shm
from trainlaunch.formats.kubernetes.fields import Fields, is_null, unknown
from trainlaunch.formats.kubernetes.volumes import UNDECIDED, Volume
from trainlaunch.formats.workload import (
    ABSENT,
    BIND,
    DISK,
    HOST,
    SIZE,
    UNSIZED,
    Known,
    MountPoint,
    Shm,
    Unknown,
    Value,
    stated,
)
from trainlaunch.yamltree.documents import Node, Sequence

MISSING = "missing"  # the type of a mount whose volume the pod doesn't have


class Mounts(NamedTuple):
    """The mounts of a container, the names of their volumes, and its /dev/shm."""

    points: tuple[MountPoint, ...]
    names: frozenset[str]
    shm: Shm


def read_mounts(container: Fields, volumes: Mapping[str, Volume], *, host_ipc: Value[bool], final: bool) -> Mounts:
    """Take the mounts of a container."""
    listed = container.peek("volumeMounts")
    if not isinstance(listed, Sequence):
        if listed is None or is_null(listed):
            return Mounts((), frozenset(), _without_volume(host_ipc))
        # A template may stand for the whole list, and nobody knows what it mounts.
        return Mounts((), frozenset(), Shm(SIZE, unknown(listed), listed.span))
    container.take("volumeMounts")
    points: list[MountPoint] = []
    names: set[str] = set()
    shm = _without_volume(host_ipc)
    for node in listed.items:
        mount = Fields(node, final=final)
        name, target = mount.text("name"), mount.text("mountPath")
        volume = _volume(name, volumes, node)
        names |= {name.value} if isinstance(name, Known) else set()
        points.append(_point(mount, volume, target))
        if isinstance(target, Known) and is_shm(target.value):
            shm = _of_volume(volume, name or unknown(node))  # the last of several lies on top
    return Mounts(tuple(points), frozenset(names), shm)


def _volume(name: Value[str], volumes: Mapping[str, Volume], node: Node) -> Volume:
    if not isinstance(name, Known):
        return Volume(UNDECIDED, node.span, name)
    return volumes.get(name.value) or Volume(MISSING, name.span, name)


def _point(mount: Fields, volume: Volume, target: Value[str]) -> MountPoint:
    stated_flag = mount.flag("readOnly")
    read_only = stated(stated_flag) is True
    options = [volume.options]
    if isinstance(stated_flag, Unknown):
        options.append(f"readOnly={stated_flag.text}")
    elif volume.type == "pvc" and read_only != volume.read_only:
        options.append("readOnly of the claim alone" if volume.read_only else "readOnly of the mount alone")
    source = volume.source
    if volume.key and isinstance(source, Known):
        source = Known(f"{source.value}/{volume.key}", source.text, source.span)
        if stated(mount.text("subPath")) != "value":
            options.append("a folder of files")
    options.append(mount.options())
    said = ", ".join(filter(None, options))
    return MountPoint(volume.type, source, target, read_only or volume.read_only, volume.size, said)


def _without_volume(host_ipc: Value[bool]) -> Shm:
    if isinstance(host_ipc, Known) and host_ipc.value:
        return Shm(HOST, span=host_ipc.span)
    return Shm(ABSENT)


def _of_volume(volume: Volume, name: Known[str] | Unknown) -> Shm:
    """Return the /dev/shm that a volume makes; one that a template decides has an Unknown size."""
    if volume.type == "tmpfs":
        if isinstance(volume.size, Known) and volume.size.value == 0:  # to the kubelet as if it was not there
            return Shm(UNSIZED, None, volume.span, volume.size)
        return Shm(SIZE if volume.size is not None else UNSIZED, volume.size, volume.span)
    if volume.type == UNDECIDED:
        return Shm(SIZE, Unknown(name.text, name.span), volume.span)
    if volume.type == MISSING:
        return Shm(ABSENT, span=volume.span)
    return Shm(BIND if volume.type == "bind" else DISK, None, volume.span, volume.size)
