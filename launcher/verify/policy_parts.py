"""What a policy says of the parts that only a patch brings: other services and containers, devices, images."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from launcher.diagnostics import Span
from launcher.formats.engine_values import engine_bytes
from launcher.formats.gpus import GPU_RESOURCE, gives_gpus
from launcher.formats.quantities import parse_quantity, quantity_text
from launcher.job.ceilings import Limit, Policy
from launcher.policy.grants import is_privilege, refused_capability, refused_host_path, refused_privilege
from launcher.policy.registry import in_registry
from launcher.render.patched import documents_of
from launcher.units import format_size
from launcher.verify.sidecars import containers_of, pods_of


def broken_by_parts(policy: Policy, bare: str, text: str) -> Iterator[tuple[str, str, str]]:
    """Yield what of a patched text the policy doesn't allow: its name, what is allowed, and what it is."""
    before = dict(_parts(bare))
    for name, part in _parts(text):
        known = before.get(name, {})
        image = part.get("image")
        if isinstance(image, str) and image != known.get("image"):
            yield from _image(policy, name, image)
        for grant in _grants(part):
            if grant not in set(_grants(known)):
                yield from _gpus(policy, name, grant)
        if name not in before:
            yield from _sizes(policy, name, part)
        yield from _privileges(policy, name, part, known)
    yield from _volumes(policy, bare, text)


def _parts(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each service or container by name."""
    documents = documents_of(text)
    for document in documents:
        for name, service in (document.get("services") or {}).items():
            yield name, service if isinstance(service, dict) else {}
    for container in containers_of(documents):
        yield str(container.get("name")), container


def _image(policy: Policy, name: str, image: str) -> Iterator[tuple[str, str, str]]:
    for values, span in policy.allowed.get("allowed_registries", ()):
        if not any(in_registry(image, each) for each in values):
            yield f"the registry of {name}", f"{', '.join(values)} ({_place(span)})", image
    if policy.digest_span is not None and "@" not in image:
        yield f"the image of {name}", f"a pinned one ({_place(policy.digest_span)})", image


def _grants(part: dict[str, Any]) -> Iterator[str]:
    """Yield what gives a service or container GPUs beside resources.gpus."""
    if part.get("privileged") is True or (part.get("securityContext") or {}).get("privileged") is True:
        yield "privileged: true"
    for key in ("devices", "runtime", "gpus", "device_cgroup_rules"):
        if part.get(key):
            yield f"{key}: {part[key]}"
    yield from (f"{name}={value}" for name, value in _environment(part) if gives_gpus(name, value))
    if (part.get("resources") or {}).get("claims"):
        yield f"claims: {part['resources']['claims']}"
    resources = (part.get("deploy") or {}).get("resources") or {}
    devices = (resources.get("reservations") or {}).get("devices")
    if devices:
        yield f"devices: {devices}"
    limits = (part.get("resources") or {}).get("limits") or {}
    yield from (f"{each}: {limits[each]}" for each in limits if GPU_RESOURCE.fullmatch(each))


def _environment(part: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the variables of a service or container."""
    stated = part.get("environment")
    if isinstance(stated, dict):
        yield from ((str(name), str(value)) for name, value in stated.items())
    elif isinstance(stated, list):
        yield from ((name, value) for name, _, value in (str(each).partition("=") for each in stated))
    for each in part.get("env") or ():
        if isinstance(each, dict):
            yield str(each.get("name")), str(each.get("value", ""))


def _gpus(policy: Policy, name: str, grant: str) -> Iterator[tuple[str, str, str]]:
    for ceiling in ("gpus", "total_gpus"):
        most = policy.max.get(ceiling)
        if most is not None:
            allowed = f"resources.gpus up to max.{ceiling} {most.value} ({_place(most.span)})"
            yield f"the devices of {name}", allowed, grant
            return


def _privileges(
    policy: Policy, name: str, part: dict[str, Any], known: dict[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """Yield each privilege and capability of a part that it didn't have."""
    had = set(_stated(known))
    for key, value in _stated(part):
        if (key, value) in had:
            continue
        if key == "cap_add":
            for allowed, span in refused_capability(policy, value):
                yield f"the capabilities of {name}", f"{allowed} ({_place(span)})", value
        elif is_privilege(key, value):
            for allowed, span in refused_privilege(policy):
                yield f"{key} of {name}", f"{allowed} ({_place(span)})", value


def _stated(part: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a service or container states of privileges, in Compose's words."""
    for key in ("privileged", "network_mode", "pid", "uts", "userns_mode", "cgroup"):
        if key in part:
            yield key, str(part[key])
    for key in ("security_opt", "cap_add"):
        value = part.get(key)
        yield from ((key, str(each)) for each in (value if isinstance(value, list) else ()))
    context = part.get("securityContext")
    if isinstance(context, dict):
        if "privileged" in context:
            yield "privileged", str(context["privileged"])
        added = (context.get("capabilities") or {}).get("add")
        yield from (("cap_add", str(each)) for each in (added if isinstance(added, list) else ()))


def _volumes(policy: Policy, bare: str, text: str) -> Iterator[tuple[str, str, str]]:
    """Yield what a patch takes from the host or the cluster, and no list of the policy has."""
    before = set(_sources(bare))
    for kind, source in _sources(text):
        if (kind, source) in before:
            continue
        if kind == "folder":
            for allowed, span in refused_host_path(policy, os.path.normpath(source)):
                yield "the folders of the host", f"{allowed} ({_place(span)})", source
        elif kind == "claim":
            for values, span in policy.allowed.get("allowed_claims", ()):
                if source not in values:
                    yield "the claims", f"{', '.join(values)} ({_place(span)})", source
        else:
            yield from _image(policy, "a volume", source)


def _sources(text: str) -> Iterator[tuple[str, str]]:
    """Yield each folder of the host, claim and image that something is mounted from."""
    documents = documents_of(text)
    for document in documents:
        yield from (("folder", each) for each in _files_of_host(document))
        for service in (document.get("services") or {}).values():
            for each in service.get("volumes") or () if isinstance(service, dict) else ():
                source = each.get("source") if isinstance(each, dict) else str(each).partition(":")[0]
                if isinstance(source, str) and "/" in source:
                    yield "folder", source
    for pod in pods_of(documents):
        for volume in pod.get("volumes") or ():
            if "hostPath" in volume:
                yield "folder", str((volume["hostPath"] or {}).get("path"))
            if "persistentVolumeClaim" in volume:
                yield "claim", str((volume["persistentVolumeClaim"] or {}).get("claimName"))
            if "image" in volume:
                yield "image", str((volume["image"] or {}).get("reference"))


def _files_of_host(document: dict[str, Any]) -> Iterator[str]:
    """Yield what named volumes, secrets and configs of a Compose file are on the host."""
    for key, inner in (("volumes", "driver_opts"), ("secrets", "file"), ("configs", "file")):
        named = document.get(key)
        for each in named.values() if isinstance(named, dict) else ():
            value = each.get(inner) if isinstance(each, dict) else None
            device = value.get("device") if isinstance(value, dict) else value
            if isinstance(device, str):
                yield device


def _sizes(policy: Policy, name: str, part: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    limits = (part.get("resources") or {}).get("limits") or {}
    pods, service = limits.get("memory"), part.get("mem_limit")
    memory = (pods, _quantity(pods)) if "mem_limit" not in part else (service, _size(service))
    stated = {"memory": memory, "shm_size": (part.get("shm_size"), _size(part.get("shm_size")))}
    for ceiling, (value, size) in stated.items():
        most: Limit | None = policy.max.get(ceiling)
        if most is None or (value is None and ceiling == "shm_size"):
            continue
        if size is None or size > most.value:
            allowed = f"max.{ceiling} {format_size(most.value)} ({_place(most.span)})"
            yield f"{ceiling} of {name}", allowed, "no limit" if value is None else str(value)


def _size(value: object) -> int | None:
    """Return the bytes of a Compose size; None where nothing is stated, or no size."""
    return engine_bytes(str(value)) if type(value) in (int, str) else None


def _quantity(value: object) -> int | None:
    """Return the bytes of a Kubernetes quantity; None where nothing is stated, or no quantity."""
    text = quantity_text(value)
    return None if text is None else parse_quantity(text)


def _place(span: Span) -> str:
    return f"{span.file}:{span.line}"
