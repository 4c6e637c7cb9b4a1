"""Reads a Compose file, one Workload for each service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from trainlaunch.formats.compose.layers import Files, MappingLayers, extended, items_of, no_files, services_of
from trainlaunch.formats.compose.mounts import read_mounts, read_shm
from trainlaunch.formats.compose.process import (
    read_argv,
    read_environment,
    read_health,
    read_labels,
    read_seconds,
    read_ulimits,
)
from trainlaunch.formats.compose.resources import read_resources
from trainlaunch.formats.compose.values import known, plain, read_bool, read_string, spelled
from trainlaunch.formats.workload import ABSENT, SIZE, ShmSetting, Unknown, Value, Workload, flat
from trainlaunch.yamltree.tolerant import Documents, Mapping, Node, Scalar, documents

T = TypeVar("T")

_COLLECTIONS = frozenset({
    "environment", "labels", "volumes", "secrets", "configs", "healthcheck", "ulimits", "group_add",
})  # fmt: skip
_READ = _COLLECTIONS | {
    "image", "pull_policy", "entrypoint", "command", "shm_size", "mem_limit", "cpus", "deploy", "gpus", "runtime",
    "devices", "tmpfs", "user", "working_dir", "read_only", "stop_signal", "stop_grace_period",
}  # fmt: skip
_INHERITED = ("image", "entrypoint", "command", "memory", "cpus", "gpus")


def read_compose(text: str, file: str, files: Files = no_files) -> tuple[Workload, ...]:
    """Return what each service of a Compose file starts; empty for any other text.

    Where the text is no YAML, `documents(text, file).broken` says why. Of several documents the later ones win, as in
    Compose. In `rest`, a service's own keys have the prefix `service.`, and `refused service.` those whose value
    Compose refuses; what stands beside the services has none and is in the first one's. A base of `extends` that is
    in another file is read by `files`.
    """
    return read_documents(documents(text, file), files)


def read_documents(found: Documents, files: Files = no_files) -> tuple[Workload, ...]:
    """Return what `read_compose` does, of documents that are parsed already."""
    if found.broken is not None:
        return ()
    document, services = services_of(found)
    extends = {name: extended(name, services, files) for name in services.names() if services.below(name).mappings}
    workloads = [_service(name, services.key(name), each, document) for name, each in extends.items()]
    if not workloads:
        return ()
    beside = dict(_beside(document, services, found))
    return (workloads[0]._replace(rest={**workloads[0].rest, **beside}), *workloads[1:])


def _service(name: str, key: Scalar, over: tuple[MappingLayers, Unknown | None], document: MappingLayers) -> Workload:
    """Return what a service starts; `over` is it over those that it extends, and what is left in another file."""
    service, elsewhere = over
    mounts = read_mounts(service, document)
    workload = Workload(
        format="compose",
        place=f"services.{name}",
        span=key.span,
        name=known(name, key),
        image=_read(service, "image", read_string),
        pull_policy=_read(service, "pull_policy", read_string),
        entrypoint=read_argv(service.get("entrypoint")),
        command=read_argv(service.get("command")),
        labels=read_labels(service),
        shm=read_shm(service, mounts, document),
        mounts=mounts,
        groups=tuple(str(plain(each)) for node in reversed(service.stack("group_add")) for each in items_of(node)),
        user=_read(service, "user", read_string),
        working_dir=_read(service, "working_dir", read_string),
        stop_signal=_read(service, "stop_signal", read_string),
        read_only=_read(service, "read_only", read_bool),
        stop_timeout=_read(service, "stop_grace_period", read_seconds),
    )
    workload = _with_the_rest(workload, service)
    return workload if elsewhere is None else _from_elsewhere(workload, elsewhere)


def _with_the_rest(workload: Workload, service: MappingLayers) -> Workload:
    """Add what comes with leaves of the same keys that no field has."""
    resources, health = read_resources(service), read_health(service.below("healthcheck"))
    ulimits, other_limits = read_ulimits(service.below("ulimits"))
    rest = {each: service.value(each) for each in service.names() if each not in _READ}
    rest |= {**resources.rest, "healthcheck": health.rest, "ulimits": other_limits}
    rest |= {each: service.value(each) for each in _COLLECTIONS if isinstance(service.get(each), Scalar)}
    workload = workload._replace(
        **read_environment(service)._asdict(),
        memory=resources.memory,
        cpus=resources.cpus,
        gpus=resources.gpus,
        devices=resources.devices,
        health=health.command,
        health_times=health.times,
        ulimits=ulimits,
    )
    return workload._replace(rest=dict(flat(rest, "service")) | dict(_refused(workload, service)))


def _refused(workload: Workload, service: MappingLayers) -> Iterator[tuple[str, object]]:
    """Yield the keys whose value is unknown though no variable decides it: Compose takes no such file."""
    values: dict[str, Value[Any]] = {
        "image": workload.image,
        "entrypoint": workload.entrypoint,
        "command": workload.command,
        "shm_size": workload.shm.size if workload.shm.kind == SIZE else workload.shm.declared,
        "mem_limit" if service.get("mem_limit") else "deploy.resources.limits.memory": workload.memory,
        "cpus" if service.get("cpus") else "deploy.resources.limits.cpus": workload.cpus,
        "read_only": workload.read_only,
    }
    for key, value in values.items():
        if isinstance(value, Unknown) and "$" not in value.text:
            yield f"refused service.{key}", value.text


def _read(service: MappingLayers, key: str, read: Callable[[Node], Value[T]]) -> Value[T]:
    node = service.get(key)
    return None if node is None else read(node)


def _from_elsewhere(workload: Workload, base: Unknown) -> Workload:
    """Return a workload whose absent values may be those of another file."""
    absent: dict[str, Any] = {each: base for each in _INHERITED if getattr(workload, each) is None}
    shm = ShmSetting(SIZE, base, base.span) if workload.shm.kind == ABSENT else workload.shm
    return workload._replace(**absent, shm=shm)


def _beside(document: MappingLayers, services: MappingLayers, found: Documents) -> Iterator[tuple[str, object]]:
    """Yield what the text says beside its services: not the secrets and configs that they take, those are mounts."""
    for number, odd in enumerate(found.odd):
        yield f"yaml.{number}", odd.message
    taken = {(key, name) for service in services.names() for key, name in _files_of(services.below(service))}
    for key in document.names():
        if key in ("secrets", "configs"):
            below = document.below(key)
            left = {each: below.value(each) for each in below.names() if (key, each) not in taken}
            yield from flat(left, key)
        elif key != "services":
            yield from flat(document.value(key), key)


def _files_of(service: MappingLayers) -> Iterator[tuple[str, str]]:
    for key in ("secrets", "configs"):
        for node in service.stack(key):
            for item in items_of(node):
                named = MappingLayers((item,)).get("source") if isinstance(item, Mapping) else item
                if isinstance(named, Scalar):
                    yield key, spelled(named)
