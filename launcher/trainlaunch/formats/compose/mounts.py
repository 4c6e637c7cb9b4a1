"""Mounts of a Compose service: volumes in both forms, tmpfs, files of secrets and configs; and its /dev/shm."""

from __future__ import annotations

from collections.abc import Iterator

from trainlaunch.formats.compose.layers import MappingLayers, is_null, items_of, part_of
from trainlaunch.formats.compose.values import (
    ignored_size,
    known,
    literal,
    pieces,
    plain,
    read_bool,
    read_size,
    read_string,
    spelled,
    unknown,
)
from trainlaunch.formats.quantities import Tmpfs, is_shm, kernel_bytes, tmpfs_of
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
    ShmSetting,
    Unknown,
    Value,
    flat,
    stated,
)
from trainlaunch.yamltree.scalars import value_of
from trainlaunch.yamltree.tolerant import Mapping, Node, Scalar, Sequence

_VARIABLE = "\ue000"  # stands for a variable while a short form is taken apart; colons of its default are its own
_LONG = frozenset({"source", "target", "type", "read_only"})
_MODES = frozenset({"ro", "rw"})

_OWN = frozenset({"", "private", "shareable"})


def read_mounts(service: MappingLayers, document: MappingLayers) -> tuple[MountPoint, ...]:
    """Return the mounts: tmpfs, volumes, then files of secrets and configs; of two at one place the winner's."""
    volumes = [each for node in reversed(service.stack("volumes")) for each in _volumes(node)]
    by_target = {
        each.target.value if isinstance(each.target, Known) else str(at): each for at, each in enumerate(volumes)
    }
    return (
        *(_tmpfs(item) for node in reversed(service.stack("tmpfs")) for item in items_of(node)),
        *(volumes if len(service.mappings) == 1 else by_target.values()),
        *_files(service, document, "secrets", "/run/secrets/"),
        *_files(service, document, "configs", "/"),
    )


def _volumes(node: Node) -> Iterator[MountPoint]:
    for item in node.items if isinstance(node, Sequence) else ():
        if isinstance(item, Mapping):
            yield _long(MappingLayers((item,)))
        else:
            yield _short(item) if isinstance(item, Scalar) else MountPoint("unknown", None, unknown(item))


def _opaque(scalar: Scalar) -> str:
    """Return a scalar's text as Compose passes it on, with one character for each variable."""
    return "".join(_VARIABLE if variable else part for part, variable in pieces(spelled(scalar)))


def _part(scalar: Scalar, piece: str) -> Value[str]:
    return unknown(scalar) if _VARIABLE in piece else part_of(scalar, piece)


def _tmpfs(item: Node) -> MountPoint:
    if not isinstance(item, Scalar):
        return MountPoint("unknown", None, unknown(item))
    parts = tmpfs_of(_opaque(item))
    return MountPoint("tmpfs", None, _part(item, parts.target), size=_option(item, parts), options=parts.options)


def _option(item: Scalar, parts: Tmpfs) -> Value[int]:
    """Return a size that the kernel reads; a variable among the options may be one."""
    if parts.size is None:
        return unknown(item) if _VARIABLE in parts.options else None
    return option_size(item, parts.size)


def option_size(item: Scalar, text: str) -> Value[int]:
    """Return the bytes of the option `size=` in a scalar."""
    size = kernel_bytes(text)
    place = part_of(item, text, after="size=")
    return unknown(item) if size is None else Known(size, place.text, place.span)


def _short(item: Scalar) -> MountPoint:
    """Return what `SOURCE:TARGET:OPTIONS` says; one letter in front of a colon is a drive of Windows, as in Compose."""
    parts: list[str] = []
    for part in _opaque(item).split(":"):
        if parts and len(parts[-1]) == 1 and parts[-1].isalpha():
            parts[-1] += f":{part}"
        else:
            parts.append(part)
    if len(parts) > 3 or not all(parts):
        return MountPoint("unknown", None, unknown(item))
    if len(parts) == 1:
        # A variable alone may hold a source too.
        return MountPoint("unknown" if _VARIABLE in parts[0] else "scratch", None, _part(item, parts[0]))
    source, target, *listed = parts
    options = [each for each in ",".join(listed).split(",") if each]
    kind = _kind(source)
    others = ["create_host_path"] * (kind == "bind") + [each for each in options if each not in _MODES]
    return MountPoint(kind, _part(item, source), _part(item, target), "ro" in options, options=",".join(others))


def _kind(source: str) -> str:
    """Return whether a short form's source is a path of the host or a volume's name."""
    if source[0] == _VARIABLE:
        return "unknown"
    return "bind" if source[0] in "./~\\" or source[1:2] == ":" else "volume"


def _long(mount: MappingLayers) -> MountPoint:
    source, target, kind = (mount.get(each) for each in ("source", "target", "type"))
    name = read_string(kind) if kind else None
    word = name.value if isinstance(name, Known) else "unknown"
    size = mount.below("tmpfs").get("size") if word == "tmpfs" else None
    read_only = mount.get("read_only")
    mode = read_bool(read_only) if read_only else None
    options = {each: mount.value(each) for each in mount.names() if each not in _LONG}
    leaves = dict(flat(options, ""))
    leaves.pop("tmpfs.size", None)
    if isinstance(mode, Unknown):
        leaves["read_only"] = mount.value("read_only")
    if word == "bind" and leaves.pop("bind.create_host_path", True) is not False:
        leaves["bind.create_host_path"] = True
    return MountPoint(
        "scratch" if word == "volume" and source is None else word,
        read_string(source) if source else None,
        read_string(target) if target else None,
        isinstance(mode, Known) and mode.value,
        _tmpfs_size(size) if size else None,
        ",".join(each.removeprefix("bind.") if value is True else f"{each}={value}" for each, value in leaves.items()),
    )


def _tmpfs_size(node: Node) -> Value[int]:
    """Return the size of a tmpfs in long form, None for an unquoted float, which Compose drops."""
    return None if isinstance(node, Scalar) and isinstance(value_of(node), float) else read_size(node)


def _files(service: MappingLayers, document: MappingLayers, key: str, folder: str) -> Iterator[MountPoint]:
    """Yield the files of secrets or configs that the service takes, each from where the document says."""
    for node in reversed(service.stack(key)):
        for item in items_of(node):
            long = MappingLayers((item,)) if isinstance(item, Mapping) else None
            named = long.get("source") if long else item
            if not isinstance(named, Scalar) or is_null(named):
                continue
            name = spelled(named)
            target = long.get("target") if long else None
            own = document.below(key).below(name)
            path = own.get("file")
            others = {each: plain(value) for layer in (long, own) if layer for each, value in _others(layer)}
            others |= {} if target else {"target": "default"}
            yield MountPoint(
                key.removesuffix("s"),
                read_string(path) if path else None,
                read_string(target) if target else known(folder + name, named),
                True,
                options=",".join(f"{each}={value}" for each, value in flat(others, "")),
            )


def _others(layer: MappingLayers) -> Iterator[tuple[str, Node]]:
    for name in layer.names():
        node = layer.get(name)
        if node is not None and name not in ("source", "target", "file"):
            yield name, node


def read_shm(service: MappingLayers, mounts: tuple[MountPoint, ...], document: MappingLayers) -> ShmSetting:
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
        return ShmSetting(ABSENT)
    ignored = ignored_size(node)
    return ShmSetting(SIZE, size, node.span) if ignored is None else ShmSetting(ABSENT, None, node.span, ignored)


def _from_ipc(service: MappingLayers, size: Value[int]) -> ShmSetting | None:
    """Return whose /dev/shm an ipc mode takes; None where it leaves the container its own."""
    node = service.get("ipc")
    mode = None if node is None else read_string(node)
    if node is None or mode is None or (isinstance(mode, Known) and mode.value in _OWN):
        return None
    if isinstance(mode, Unknown):
        return ShmSetting(SIZE, mode, node.span, size)
    kind = {"host": HOST, "none": NONE}.get(mode.value, CONTAINER)
    return ShmSetting(kind, None, node.span, size)


def _mounted(mount: MountPoint, document: MappingLayers) -> ShmSetting:
    place = mount.target
    span = place.span if place is not None else None
    if mount.type == "unknown" and place is not None:
        return ShmSetting(SIZE, Unknown(place.text, place.span), span)
    size, kind = mount.size, mount.type
    if kind == "volume" and isinstance(mount.source, Known):
        options = document.below("volumes").below(mount.source.value).below("driver_opts")
        if options.value("type") == "tmpfs":
            kind, size = "tmpfs", _volume_size(options.get("o"))
    if kind != "tmpfs":
        return ShmSetting(BIND if kind == "bind" else DISK, None, span)
    return ShmSetting(UNSIZED, None, span) if size is None or stated(size) == 0 else ShmSetting(TMPFS, size, span)


def _volume_size(node: Node | None) -> Value[int]:
    """Return the size among the options of a volume that lies in memory."""
    if not isinstance(node, Scalar):
        return None
    if literal(spelled(node)) is None:
        return unknown(node)
    text = tmpfs_of(f":{spelled(node)}").size
    return None if text is None else option_size(node, text)
