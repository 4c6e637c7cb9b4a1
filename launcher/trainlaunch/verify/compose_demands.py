"""What the services of a Compose file take, and what its volumes, secrets and networks are, as demands."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

from trainlaunch.formats.docker.flags import takes_shm
from trainlaunch.formats.docker.values import cpu_thousandths, is_path, volume_paths
from trainlaunch.formats.gpus import gives_gpu_nodes, gives_gpus, gives_gpus_at
from trainlaunch.formats.quantities import engine_bytes, kernel_bytes, tmpfs_of
from trainlaunch.policy.demands import (
    BUILT,
    CPUS,
    GPUS,
    HOST_PATH,
    IMAGE,
    LIFTED,
    MEMORY,
    SHM_SIZE,
    Demand,
    annotation_demands,
    capability,
    device_path,
    host_path,
    is_true,
    privilege,
)
from trainlaunch.verify.documents import listed, mapping, mappings

_PRIVILEGES = (
    *("privileged", "network_mode", "pid", "ipc", "uts", "userns_mode", "cgroup"),
    *("security_opt", "device_cgroup_rules", "volumes_from"),
)
_ONE_CPU = 100_000  # microseconds of a period, where none is set


def service_demands(service: dict[str, Any], folder: str, *, added: bool) -> Iterator[Demand]:
    """Yield what a service takes; paths are seen from `folder`. The plan has the sizes of one that isn't `added`.

    Short forms of volumes and of the environment are read nowhere: no rendered file may have one.
    """
    if added:
        yield from _sizes(service)
        yield from _shm(service)
    if "image" in service:
        yield Demand(IMAGE, "image", str(service["image"]), str(service["image"]))
    if is_true(service.get("oom_kill_disable")):
        yield Demand(LIFTED, "oom_kill_disable", None, str(service["oom_kill_disable"]))
    if service.get("cgroup_parent"):
        yield Demand(LIFTED, "cgroup_parent", None, str(service["cgroup_parent"]))
    swap = service.get("memswap_limit")
    if swap is not None and _bytes(swap) != 0:
        yield Demand(MEMORY, "memswap_limit", _bytes(swap), str(swap))
    yield from _gpus(service)
    for each in _pairs(service.get("annotations")):
        yield from annotation_demands(*each)
    yield from _mounts(service, folder)
    yield from _privileges(service)
    yield from _build(service.get("build"), folder)


def _sizes(service: dict[str, Any]) -> Iterator[Demand]:
    """Yield the limits of all replicas together; what is 0 or below is no limit."""
    deploy = mapping(service.get("deploy"))
    limits = mapping(mapping(deploy.get("resources")).get("limits"))
    replicas = [each for each in (service.get("scale"), deploy.get("replicas")) if each is not None]
    times = [each for each in map(_whole, replicas) if each is not None]
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
        said = " and ".join(dict.fromkeys(text for text, _ in stated)) or "no limit"
        known = [value for _, value in stated if value and value > 0]
        unsure = not known or len(known) < len(stated) or len(times) < len(replicas)
        said = " × ".join((*map(str, replicas[-1:]), said))
        yield Demand(kind, kind, None if unsure else max(known) * max([1, *times]), said)


def _shm(service: dict[str, Any]) -> Iterator[Demand]:
    """Yield the size of /dev/shm and of all that lies in its place; a folder or volume there is of any size."""
    if "shm_size" in service:
        yield Demand(SHM_SIZE, "shm_size", _bytes(service["shm_size"]), str(service["shm_size"]))
    for each in listed(service.get("tmpfs")):
        read = tmpfs_of(str(each))
        if takes_shm(read.target.lstrip("/")):
            size = kernel_bytes(read.size) if read.size else None
            yield Demand(SHM_SIZE, "the tmpfs at /dev/shm", size or None, str(each))
    for each in mappings(service.get("volumes")):
        if takes_shm(str(each.get("target")).lstrip("/")):
            stated = mapping(each.get("tmpfs")).get("size") if each.get("type") == "tmpfs" else None
            yield Demand(
                SHM_SIZE,
                "the mount at /dev/shm",
                _bytes(stated) or None,
                f"{each.get('type')} of {'no size' if stated is None else stated}",
            )


def _gpus(service: dict[str, Any]) -> Iterator[Demand]:
    """Yield what gives a service GPUs beside resources.gpus."""
    build = mapping(service.get("build"))
    found = [f"{key}: {service[key]}" for key in ("runtime", "gpus", "device_cgroup_rules") if service.get(key)]
    found += [f"privileged: {each['privileged']}" for each in (service, build) if is_true(each.get("privileged"))]
    found += [f"entitlements: {build['entitlements']}"] if build.get("entitlements") else []
    found += [f"device {each}" for each in _nodes(service) if gives_gpu_nodes(each)]
    found += [
        f"{name}={value}" for name, value in mapping(service.get("environment")).items() if gives_gpus(name, value)
    ]
    reserved = mapping(mapping(mapping(service.get("deploy")).get("resources")).get("reservations"))
    found += [f"{key}: {reserved[key]}" for key in ("devices", "generic_resources") if reserved.get(key)]
    targets = [str(each.get("target")) for each in mappings(service.get("volumes"))]
    found += [f"the mount {each}" for each in targets if gives_gpus_at(each)]
    yield from (Demand(GPUS, "the devices", each, each) for each in found)


def _nodes(service: dict[str, Any]) -> Iterator[str]:
    """Yield each device of a service: a node of the host, or a CDI name."""
    for each in listed(service.get("devices")):
        yield str(each.get("source") if isinstance(each, dict) else each).partition(":")[0]


def _mounts(service: dict[str, Any], folder: str) -> Iterator[Demand]:
    for each in mappings(service.get("volumes")):
        source = str(each.get("source") or "")
        if each.get("type") == "image":
            yield Demand(IMAGE, "image of a volume", source, source)
        elif each.get("type") in ("bind", "npipe") or is_path(source) or "/" in source:
            yield host_path("the folders of the host", source, folder)
    for node in _nodes(service):
        yield from device_path("the devices of the host", node)
    for each in mappings(mapping(service.get("develop")).get("watch")):
        yield host_path("the folders that Compose watches", str(each.get("path", ".")), folder)
    credentials = mapping(service.get("credential_spec")).get("file")
    if credentials is not None:
        yield host_path("the files of the host", str(credentials), folder)


def _privileges(service: dict[str, Any]) -> Iterator[Demand]:
    for key in _PRIVILEGES:
        for each in listed(service.get(key)):
            yield from privilege(key, key, each)
    hooks = [each for key in ("post_start", "pre_stop") for each in mappings(service.get(key))]
    hooks += [mapping(each.get("exec")) for each in mappings(mapping(service.get("develop")).get("watch"))]
    for hook in hooks:
        yield from privilege("privileged", "privileged", hook.get("privileged"))
    yield from (capability("cap_add", str(each)) for each in listed(service.get("cap_add")))


def _build(build: Any, folder: str) -> Iterator[Demand]:
    """Yield what a build takes: its image is in no registry, it runs without limits, and its contexts are folders."""
    if build is None:
        return
    yield Demand(IMAGE, "image", BUILT, BUILT)
    yield Demand(LIFTED, "build", None, "a build, which has no limit")
    stated = build if isinstance(build, dict) else {"context": build}
    if "shm_size" in stated:
        yield Demand(SHM_SIZE, "shm_size of the build", _bytes(stated["shm_size"]), str(stated["shm_size"]))
    folders = [value for key in ("additional_contexts", "ssh") for _, value in _pairs(stated.get(key))]
    for key in ("cache_from", "cache_to"):
        parts = [part for each in listed(stated.get(key)) for part in str(each).split(",")]
        folders += [part.partition("=")[2] for part in parts if part.startswith(("src=", "dest="))]
    context = str(stated.get("context", "."))
    for each in (context, *filter(None, folders)):
        if each.startswith("oci-layout://") or ("://" not in each and not each.startswith("service:")):
            yield host_path("the folders of the host", each.removeprefix("oci-layout://"), folder)
    if "dockerfile" in stated:
        yield host_path("the files of the host", posixpath.join(context, str(stated["dockerfile"])), folder)
    yield from privilege("privileged", "privileged", stated.get("privileged"))
    yield from privilege("privileged", "privileged", bool(stated.get("entitlements")))
    yield from privilege("network_mode", "network_mode", stated.get("network"))


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
        stated = mapping(each)
        names = (stated.get("name", key), mapping(stated.get("external")).get("name"), stated.get("driver"))
        if "host" in names:
            yield from privilege(f"the network {key}", "network_mode", "host")


def _pairs(stated: object) -> list[tuple[str, str]]:
    """Return the items of a mapping, or of a list of `key=value`."""
    found = [(key, "" if value is None else value) for key, value in mapping(stated).items()]
    return [
        *((str(key), str(value)) for key, value in found),
        *(str(each).partition("=")[::2] for each in listed(stated)),
    ]


def _bytes(value: object) -> int | None:
    """Return the bytes of a Compose size; None where nothing is set, or no size."""
    return engine_bytes(str(value)) if type(value) in (int, str) else None


def _whole(value: object) -> int | None:
    text = str(value)
    return int(text) if text.lstrip("-").isdecimal() and type(value) in (int, str) else None
