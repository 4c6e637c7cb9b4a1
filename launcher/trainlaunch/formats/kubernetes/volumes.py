"""The volumes of a pod, what a container mounts of them, and what that makes of its /dev/shm."""

from collections.abc import Mapping as ReadOnly
from typing import NamedTuple

from trainlaunch.diagnostics import Span
from trainlaunch.formats.kubernetes.fields import Fields, is_null, unknown
from trainlaunch.formats.quantities import is_shm
from trainlaunch.formats.workload import (
    ABSENT,
    BIND,
    DISK,
    HOST,
    SIZE,
    UNSIZED,
    Known,
    MountPoint,
    ShmSetting,
    Unknown,
    Value,
    stated,
)
from trainlaunch.yamltree.tolerant import Mapping, Node, Sequence

UNDECIDED = "undecided"  # the type of a volume that a template decides
CLAIM = "pvc"
_OWNER_AND_GROUP_READ = 0o440
_NAMED = {"persistentVolumeClaim": (CLAIM, "claimName"), "configMap": ("config", "name"), "hostPath": ("bind", "path")}

MISSING = "missing"  # the type of a mount whose volume the pod doesn't have


class Volume(NamedTuple):
    """One volume: `type`, `source`, `size` and `options` as a MountPoint has them, `span` is where it says so.

    `read_only` is of a PVC alone. `key` is the one key of a Secret that is a file called `value`, which its owner
    and the pod's group may read. `place` is its index in the pod's list.
    """

    type: str
    span: Span
    source: Value[str] = None
    size: Value[int] = None
    read_only: bool = False
    key: str = ""
    options: str = ""
    place: int = -1


def read_volumes(listed: Sequence, *, final: bool) -> dict[str, Volume]:
    """Return volumes by name, the last of those that share one; those without a name are left out."""
    volumes: dict[str, Volume] = {}
    for index, node in enumerate(listed.items):
        fields = Fields(node, final=final)
        name = fields.pop_str("name")
        if isinstance(name, Known):
            volumes[name.value] = _read_volume(fields, node)._replace(place=index)
    return volumes


def claims(node: Node | None, *, final: bool) -> dict[str, Volume]:
    """Return what `volumeClaimTemplates` gives the pods below it, by name: a PVC, whatever else an item says."""
    found: dict[str, Volume] = {}
    for each in node.items if isinstance(node, Sequence) else ():
        name = Fields(each, final=final).within("metadata").pop_str("name")
        if isinstance(name, Known):
            found[name.value] = Volume(CLAIM, each.span, name)
    return found


def _read_volume(fields: Fields, node: Node) -> Volume:
    sources = [each for each in fields.names() if (at := fields.peek(each)) is not None and not is_null(at)]
    if fields.templated:
        return Volume(UNDECIDED, node.span)
    if not sources:
        return Volume("scratch", node.span, options="by default")  # the API server makes it an emptyDir
    kind = sources[0]
    at = fields.peek(kind) or node
    source = fields.within(kind)
    if not isinstance(at, Mapping) or source.templated:
        return Volume(UNDECIDED, at.span)
    volume = _read_source(kind, source, at.span)
    return volume._replace(options=fields.options())


def _read_source(kind: str, source: Fields, span: Span) -> Volume:
    if kind == "emptyDir":
        return _empty_dir(source, span)
    if kind == "secret":
        return _secret(source, span)
    type_, key = _NAMED.get(kind, (kind, ""))
    volume = Volume(type_, span, source.pop_str(key) if key else None)
    return volume._replace(read_only=stated(source.pop_bool("readOnly")) is True) if type_ == CLAIM else volume


def _empty_dir(source: Fields, span: Span) -> Volume:
    medium, size = source.peek("medium"), source.quantity("sizeLimit")
    word = source.pop_str("medium")
    if isinstance(word, Unknown):
        return Volume(UNDECIDED, span, size=size)
    if word is None or word.value in ("", "Memory"):
        return Volume("tmpfs" if word is not None and word.value else "scratch", span, size=size)
    # The kubelet knows HugePages too; any other word, as `memory`, keeps the pod from starting.
    return Volume(f"scratch on {word.value}", medium.span if medium is not None else span, size=size)


def _secret(source: Fields, span: Span) -> Volume:
    name, items = source.peek("secretName"), source.peek("items")
    volume = Volume("secret", span, source.pop_str("secretName"))
    key = _only_key(items)
    mode = source.peek("defaultMode")
    if key is None or name is None or mode is None:
        return volume
    if stated(source.pop_int("defaultMode")) != _OWNER_AND_GROUP_READ:
        return volume._replace(options=f"defaultMode={mode.raw}")
    source.take("items")
    return volume._replace(key=key)


def _only_key(items: Node | None) -> str | None:
    """Return the key of a Secret's only item, if it becomes a file called `value` and nothing else."""
    if not isinstance(items, Sequence) or len(items.items) != 1:
        return None
    item = Fields(items.items[0], final=True)
    key, path = item.pop_str("key"), item.pop_str("path")
    return stated(key) if stated(path) == "value" and not item.names() else None


class Mounts(NamedTuple):
    """The mounts of a container, the names of their volumes, and its /dev/shm."""

    points: tuple[MountPoint, ...]
    names: frozenset[str]
    shm: ShmSetting


def read_mounts(container: Fields, volumes: ReadOnly[str, Volume], *, host_ipc: Value[bool], final: bool) -> Mounts:
    """Take the mounts of a container."""
    listed = container.peek("volumeMounts")
    if not isinstance(listed, Sequence):
        if listed is None or is_null(listed):
            return Mounts((), frozenset(), _without_volume(host_ipc))
        # A template may stand for the whole list, and nobody knows what it mounts.
        return Mounts((), frozenset(), ShmSetting(SIZE, unknown(listed), listed.span))
    container.take("volumeMounts")
    points: list[MountPoint] = []
    names: set[str] = set()
    shm = _without_volume(host_ipc)
    for node in listed.items:
        mount = Fields(node, final=final)
        name, target = mount.pop_str("name"), mount.pop_str("mountPath")
        volume = _volume(name, volumes, node)
        names |= {name.value} if isinstance(name, Known) else set()
        points.append(_point(mount, volume, target))
        if isinstance(target, Known) and is_shm(target.value):
            shm = _of_volume(volume, name or unknown(node))  # the last of several lies on top
    return Mounts(tuple(points), frozenset(names), shm)


def _volume(name: Value[str], volumes: ReadOnly[str, Volume], node: Node) -> Volume:
    if not isinstance(name, Known):
        return Volume(UNDECIDED, node.span, name)
    return volumes.get(name.value) or Volume(MISSING, name.span, name)


def _point(mount: Fields, volume: Volume, target: Value[str]) -> MountPoint:
    stated_flag = mount.pop_bool("readOnly")
    read_only = stated(stated_flag) is True
    options = [volume.options]
    if isinstance(stated_flag, Unknown):
        options.append(f"readOnly={stated_flag.text}")
    elif volume.type == "pvc" and read_only != volume.read_only:
        options.append("readOnly of the PVC alone" if volume.read_only else "readOnly of the mount alone")
    source = volume.source
    if volume.key and isinstance(source, Known):
        source = Known(f"{source.value}/{volume.key}", source.text, source.span)
        if stated(mount.pop_str("subPath")) != "value":
            options.append("a folder of files")
    options.append(mount.options())
    said = ", ".join(filter(None, options))
    return MountPoint(volume.type, source, target, read_only or volume.read_only, volume.size, said)


def _without_volume(host_ipc: Value[bool]) -> ShmSetting:
    if isinstance(host_ipc, Known) and host_ipc.value:
        return ShmSetting(HOST, span=host_ipc.span)
    return ShmSetting(ABSENT)


def _of_volume(volume: Volume, name: Known[str] | Unknown) -> ShmSetting:
    """Return the /dev/shm that a volume makes; one that a template decides has an Unknown size."""
    if volume.type == "tmpfs":
        if isinstance(volume.size, Known) and volume.size.value == 0:  # to the kubelet as if it was not there
            return ShmSetting(UNSIZED, None, volume.span, volume.size)
        return ShmSetting(SIZE if volume.size is not None else UNSIZED, volume.size, volume.span)
    if volume.type == UNDECIDED:
        return ShmSetting(SIZE, Unknown(name.text, name.span), volume.span)
    if volume.type == MISSING:
        return ShmSetting(ABSENT, span=volume.span)
    return ShmSetting(BIND if volume.type == "bind" else DISK, None, volume.span, volume.size)
