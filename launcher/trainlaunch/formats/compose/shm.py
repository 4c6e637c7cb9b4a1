"""What /dev/shm of a Compose service is: a mount there, an ipc mode, or shm_size."""

from __future__ import annotations

from trainlaunch.formats.compose.layers import Layers
from trainlaunch.formats.compose.mounts import option_size
from trainlaunch.formats.compose.values import ignored_size, literal, read_size, read_string, spelled, unknown
from trainlaunch.formats.engine_values import is_shm, tmpfs_of
from trainlaunch.formats.workload import (
    ABSENT,
    BIND,
    CONTAINER,
    DISK,
    HOST,
    NONE,
    SIZE,
    TMPFS,
    UNSIZED,
    Known,
    MountPoint,
    Shm,
    Unknown,
    Value,
    stated,
)
from trainlaunch.yamltree.documents import Node, Scalar

_OWN = frozenset({"", "private", "shareable"})


def read_shm(service: Layers, mounts: tuple[MountPoint, ...], document: Layers) -> Shm:
    """Return what /dev/shm is. A mount there wins over the ipc mode, and both over shm_size."""
    node = service.get("shm_size")
    size = None if node is None else read_size(node)
    there = [each for each in mounts if isinstance(each.target, Known) and is_shm(each.target.value)]
    if there:
        return _mounted(there[-1], document)._replace(declared=size)
    ipc = _from_ipc(service, size)
    if ipc is not None:
        return ipc
    if node is None:
        return Shm(ABSENT)
    ignored = ignored_size(node)
    return Shm(SIZE, size, node.span) if ignored is None else Shm(ABSENT, None, node.span, ignored)


def _from_ipc(service: Layers, size: Value[int]) -> Shm | None:
    """Return whose /dev/shm an ipc mode takes; None where it leaves the container its own."""
    node = service.get("ipc")
    mode = None if node is None else read_string(node)
    if node is None or mode is None or (isinstance(mode, Known) and mode.value in _OWN):
        return None
    if isinstance(mode, Unknown):
        return Shm(SIZE, mode, node.span, size)
    kind = {"host": HOST, "none": NONE}.get(mode.value, CONTAINER)
    return Shm(kind, None, node.span, size)


def _mounted(mount: MountPoint, document: Layers) -> Shm:
    place = mount.target
    span = place.span if place is not None else None
    if mount.type == "unknown" and place is not None:
        return Shm(SIZE, Unknown(place.text, place.span), span)
    size, kind = mount.size, mount.type
    if kind == "volume" and isinstance(mount.source, Known):
        options = document.below("volumes").below(mount.source.value).below("driver_opts")
        if options.value("type") == "tmpfs":
            kind, size = "tmpfs", _volume_size(options.get("o"))
    if kind != "tmpfs":
        return Shm(BIND if kind == "bind" else DISK, None, span)
    return Shm(UNSIZED, None, span) if size is None or stated(size) == 0 else Shm(TMPFS, size, span)


def _volume_size(node: Node | None) -> Value[int]:
    """Return the size among the options of a volume that lies in memory."""
    if not isinstance(node, Scalar):
        return None
    if literal(spelled(node)) is None:
        return unknown(node)
    text = tmpfs_of(f":{spelled(node)}").size
    return None if text is None else option_size(node, text)
