"""What flags of docker run take, as demands that a policy is asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from trainlaunch.formats.docker.flags import Flag
from trainlaunch.formats.docker.values import is_path, volume_options, volume_paths
from trainlaunch.formats.gpus import gives_gpu_nodes, gives_gpus, gives_gpus_at
from trainlaunch.formats.quantities import engine_bytes
from trainlaunch.policy.demands import (
    ENGINE_SOCKET,
    GPUS,
    HOST_PATH,
    IMAGE,
    LIFTED,
    MEMORY,
    Demand,
    annotation_demands,
    capability,
    device_path,
    host_path,
    is_true,
    privilege,
)

_GIVES_GPUS: Mapping[str, Callable[[str], bool]] = {
    "device": gives_gpu_nodes,
    "env": lambda value: gives_gpus(value.partition("=")[0], value.partition("=")[2] if "=" in value else None),
    **dict.fromkeys(("privileged", "runtime", "device-cgroup-rule"), is_true),
}


def flag_demands(flag: Flag, folder: str) -> Iterator[Demand]:
    """Yield what a flag takes; relative paths are seen from `folder`."""
    value, name, said = flag.value or "", f"--{flag.name}", " ".join(flag.words)
    yield from (host_path(name, path, folder) for path in _paths(flag))
    gives = _GIVES_GPUS.get(flag.name)
    if (gives and gives(value)) or gives_gpus_at(flag.mount_target or ""):
        yield Demand(GPUS, name, value, said)
    if flag.name == "device":
        yield from device_path(name, value.partition(":")[0])
    if flag.name == "annotation":
        yield from annotation_demands(*value.partition("=")[::2])
    if flag.name == "mount" and flag.mount_fields.get("type", "").lower() == "image":
        yield Demand(IMAGE, name, flag.mount_fields.get("source"), said)
    if flag.name == "memory-swap" and engine_bytes(value) != 0:
        yield Demand(MEMORY, name, engine_bytes(value), said)
    if flag.name == "cgroup-parent" or (flag.name == "oom-kill-disable" and is_true(value)):
        yield Demand(LIFTED, name, value, said)
    if flag.name == "cap-add":
        yield capability(name, value)
    if flag.name == "use-api-socket" and is_true(value):
        yield Demand(HOST_PATH, name, ENGINE_SOCKET, ENGINE_SOCKET)
    yield from privilege(name, flag.name, value)


def _paths(flag: Flag) -> Iterator[str]:
    """Yield the paths of the host that --mount and --volume take; none of named volumes."""
    value = flag.value or ""
    if flag.name == "mount":
        fields = flag.mount_fields
        source = fields.get("source", "")
        if source and (fields.get("type", "").lower() == "bind" or is_path(source)):
            yield source
        yield from volume_paths(volume_options(value))
    source, colon, _ = value.partition(":")
    if flag.name == "volume" and colon and (is_path(source) or "/" in source):
        yield source
