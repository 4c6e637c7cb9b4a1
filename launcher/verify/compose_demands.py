"""What the services of a Compose file take, and what its volumes, secrets and networks are, as demands."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

from launcher.formats.docker.flags import takes_shm
from launcher.formats.docker.mounts import is_path, volume_paths
from launcher.formats.docker.values import cpu_thousandths
from launcher.formats.engine_values import engine_bytes, kernel_bytes, tmpfs_of
from launcher.formats.gpus import CDI_ANNOTATION, gives_gpu_nodes, gives_gpus, gives_gpus_at
from launcher.policy.demands import (
    BUILT,
    CAPABILITY,
    CPUS,
    GPUS,
    HOST_PATH,
    IMAGE,
    LIFTED,
    MEMORY,
    PRIVILEGE,
    SHM_SIZE,
    Demand,
    host_path,
)

_NAMESPACES = ("privileged", "network_mode", "pid", "ipc", "uts", "userns_mode", "cgroup")
_ONE_CPU = 100_000  # microseconds of a period, where none is stated


def service_demands(service: dict[str, Any], folder: str, *, added: bool) -> Iterator[Demand]:
    """Yield what a service takes; paths are seen from `folder`. The plan has the sizes of one that isn't `added`."""
    if added:
        yield from _sizes(service)
    if "image" in service:
        yield Demand(IMAGE, "image", str(service["image"]), str(service["image"]))
    if service.get("oom_kill_disable"):
        yield Demand(LIFTED, "oom_kill_disable", None, str(service["oom_kill_disable"]))
    if service.get("cgroup_parent"):
        yield Demand(LIFTED, "cgroup_parent", None, str(service["cgroup_parent"]))
    swap = service.get("memswap_limit")
    if swap is not None and _bytes(swap) != 0:
        yield Demand(MEMORY, "memswap_limit", _bytes(swap), str(swap))
    yield from _gpus(service)
    yield from _mounts(service, folder)
    yield from _privileges(service)
    yield from _build(service.get("build"), folder)


def _sizes(service: dict[str, Any]) -> Iterator[Demand]:
    """Yield the limits of all replicas together; what is 0 or below is no limit."""
    deploy = mapping(service.get("deploy"))
    limits = mapping(mapping(deploy.get("resources")).get("limits"))
    counts = [each for each in (service.get("scale"), deploy.get("replicas")) if each is not None]
    replicas = max((_whole(each) or 0 for each in counts), default=1)
    unreadable = any(_whole(each) is None for each in counts)
    memory = [each for each in (service.get("mem_limit"), limits.get("memory")) if each is not None]
    cpus = [each for each in (service.get("cpus"), limits.get("cpus")) if each is not None]
    read: dict[str, list[tuple[str, int | None]]] = {
        MEMORY: [(str(each), _bytes(each)) for each in memory],
        CPUS: [(str(each), cpu_thousandths(str(each))) for each in cpus],
    }
    if "cpu_quota" in service:
        quota, period = _whole(service["cpu_quota"]), _whole(service.get("cpu_period", _ONE_CPU))
        share = -(-quota * 1000 // period) if quota and period and period > 0 else None
        read[CPUS].append((f"cpu_quota {service['cpu_quota']}", share))
    for kind, stated in read.items():
        values = [value if value and value > 0 and not unreadable else None for _, value in stated] or [None]
        said = " and ".join(dict.fromkeys(text for text, _ in stated)) or "no limit"
        several = f"{replicas} × {said}" if replicas > 1 else said
        known = [each for each in values if each is not None]
        yield Demand(kind, kind, max(known) * max(1, replicas) if len(known) == len(values) else None, several)
    if "shm_size" in service:
        yield Demand(SHM_SIZE, "shm_size", _bytes(service["shm_size"]), str(service["shm_size"]))
    for size, said in _memory_at_shm(service):
        yield Demand(SHM_SIZE, "the tmpfs at /dev/shm", size, said)


def _memory_at_shm(service: dict[str, Any]) -> Iterator[tuple[int | None, str]]:
    """Yield each tmpfs in place of /dev/shm, with its size."""
    for each in listed(service.get("tmpfs")):
        read = tmpfs_of(str(each))
        if takes_shm(read.target.lstrip("/")):
            yield (kernel_bytes(read.size) or None) if read.size else None, str(each)
    for each in listed(service.get("volumes")):
        if isinstance(each, dict) and each.get("type") == "tmpfs" and takes_shm(str(each.get("target")).lstrip("/")):
            size = mapping(each.get("tmpfs")).get("size")
            yield _bytes(size) or None, "no size" if size is None else str(size)


def _gpus(service: dict[str, Any]) -> Iterator[Demand]:
    """Yield what gives a service GPUs beside resources.gpus."""
    found = [f"{key}: {service[key]}" for key in ("runtime", "gpus", "device_cgroup_rules") if service.get(key)]
    if service.get("privileged") is True:
        found.append("privileged: true")
    found += [f"device {each}" for each in _nodes(service) if gives_gpu_nodes(each)]
    annotations = service.get("annotations")
    names = [str(each).partition("=")[0] for each in listed(annotations)] or list(mapping(annotations))
    found += [f"annotation {each}" for each in names if str(each).startswith(CDI_ANNOTATION)]
    found += [f"{name}={value}" for name, value in _environment(service) if gives_gpus(name, value)]
    resources = mapping(mapping(service.get("deploy")).get("resources"))
    reserved = mapping(resources.get("reservations"))
    found += [f"{key}: {reserved[key]}" for key in ("devices", "generic_resources") if reserved.get(key)]
    found += [f"the mount {each}" for _, each in _volumes(service) if gives_gpus_at(each)]
    yield from (Demand(GPUS, "the devices", each, each) for each in found)


def _environment(service: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield the variables of a service; None for a value that stands elsewhere."""
    stated = service.get("environment")
    for name, value in mapping(stated).items():
        yield str(name), None if value is None else str(value)
    for name, equals, value in (str(each).partition("=") for each in listed(stated)):
        yield name, value if equals else None


def _nodes(service: dict[str, Any]) -> Iterator[str]:
    """Yield each device of a service: a node of the host, or a CDI name."""
    for each in listed(service.get("devices")):
        yield str(each.get("source")) if isinstance(each, dict) else str(each).partition(":")[0]


def _volumes(service: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each volume of a service in its long form, with its target."""
    for each in listed(service.get("volumes")):
        source, colon, rest = str(each).partition(":")
        short = {"source": source, "target": rest.partition(":")[0]} if colon else {"target": source}
        found = each if isinstance(each, dict) else short
        yield found, str(found.get("target"))


def _mounts(service: dict[str, Any], folder: str) -> Iterator[Demand]:
    for each, _ in _volumes(service):
        source = str(each.get("source") or "")
        if each.get("type") == "image":
            yield Demand(IMAGE, "image of a volume", source, source)
        elif each.get("type") == "bind" or is_path(source) or "/" in source:
            yield host_path("the folders of the host", source, folder)
    for node in _nodes(service):
        if node.startswith("/"):
            yield host_path("the devices of the host", node, folder)
    for each in listed(mapping(service.get("develop")).get("watch")):
        yield host_path("the folders that Compose watches", str(mapping(each).get("path", ".")), folder)
    credentials = mapping(service.get("credential_spec")).get("file")
    if credentials is not None:
        yield host_path("the files of the host", str(credentials), folder)


def _privileges(service: dict[str, Any]) -> Iterator[Demand]:
    stated: list[tuple[str, Any]] = [(key, service[key]) for key in _NAMESPACES if key in service]
    for key in ("security_opt", "device_cgroup_rules", "volumes_from"):
        stated += [(key, each) for each in listed(service.get(key))]
    for key in ("post_start", "pre_stop"):
        hooks = [each for each in listed(service.get(key)) if isinstance(each, dict)]
        stated += [("privileged", each["privileged"]) for each in hooks if "privileged" in each]
    yield from (Demand(PRIVILEGE, key, key, str(value)) for key, value in stated)
    yield from (Demand(CAPABILITY, "cap_add", str(each), str(each)) for each in listed(service.get("cap_add")))


def _build(build: Any, folder: str) -> Iterator[Demand]:
    """Yield what a build takes: its image is in no registry, and its contexts are folders of the host or elsewhere."""
    if build is None:
        return
    yield Demand(IMAGE, "image", BUILT, BUILT)
    stated = build if isinstance(build, dict) else {"context": build}
    folders = [each for key in ("additional_contexts", "ssh") for each in _values(stated.get(key))]
    for key in ("cache_from", "cache_to"):
        parts = [part for each in listed(stated.get(key)) for part in str(each).split(",")]
        folders += [part.partition("=")[2] for part in parts if part.startswith(("src=", "dest="))]
    context = str(stated.get("context", "."))
    for each in (context, *filter(None, folders)):
        if each.startswith("oci-layout://") or ("://" not in each and not each.startswith("service:")):
            yield host_path("the folders of the host", each.removeprefix("oci-layout://"), folder)
    if "dockerfile" in stated:
        yield host_path("the files of the host", posixpath.join(context, str(stated["dockerfile"])), folder)
    yield Demand(
        PRIVILEGE, "privileged", "privileged", str(bool(stated.get("privileged") or stated.get("entitlements")))
    )
    yield Demand(PRIVILEGE, "network_mode", "network_mode", str(stated.get("network")))


def _values(stated: object) -> list[str]:
    """Return the values of a mapping, or of a list of `key=value`."""
    items = [str(each).partition("=")[2] for each in listed(stated)]
    return items or [str(each or "") for each in mapping(stated).values()]


def file_demands(document: dict[str, Any], folder: str) -> Iterator[Demand]:
    """Yield what named volumes, secrets, configs and networks of a Compose file are on the host."""
    for key in ("secrets", "configs"):
        for each in mapping(document.get(key)).values():
            if mapping(each).get("file") is not None:
                yield host_path(f"the {key}", str(each["file"]), folder)
    for each in mapping(document.get("volumes")).values():
        options = mapping(mapping(each).get("driver_opts"))
        for path in volume_paths({str(name): str(value) for name, value in options.items()}):
            yield Demand(HOST_PATH, "the volumes", posixpath.normpath(path).replace("//", "/"), path)
    for key, each in mapping(document.get("networks")).items():
        if "host" in (mapping(each).get("name", key), mapping(each).get("driver")):
            yield Demand(PRIVILEGE, f"the network {key}", "network_mode", "host")


def mapping(value: object) -> dict[str, Any]:
    """Return a mapping, an empty one of anything else."""
    return value if isinstance(value, dict) else {}


def listed(value: object) -> list[Any]:
    """Return a list, a scalar as the only item; nothing of a mapping and of null."""
    if isinstance(value, list):
        return value
    return [] if value is None or isinstance(value, dict) else [value]


def _bytes(value: object) -> int | None:
    """Return the bytes of a Compose size; None where nothing is stated, or no size."""
    return engine_bytes(str(value)) if type(value) in (int, str) else None


def _whole(value: object) -> int | None:
    text = str(value)
    return int(text) if text.lstrip("-").isdecimal() and type(value) in (int, str) else None
