"""What a policy says of the parts that only a patch brings: other services and containers, devices, images."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from launcher.diagnostics import Span
from launcher.formats.docker.mounts import is_path, volume_paths
from launcher.formats.engine_values import engine_bytes
from launcher.formats.gpus import CDI_ANNOTATION, GPU_RESOURCE, gives_gpu_nodes, gives_gpus
from launcher.formats.quantities import parse_quantity, quantity_text
from launcher.job.ceilings import Limit, Policy
from launcher.policy.grants import is_privilege, refused_capability, refused_host_path, refused_privilege
from launcher.policy.registry import in_registry
from launcher.render.patched import documents_of
from launcher.units import format_size
from launcher.verify.sidecars import containers_of, pods_of

_BUILT = "BUILT-HERE/image"  # no registry has it, and no digest


def broken_by_parts(policy: Policy, bare: str, text: str) -> Iterator[tuple[str, str, str]]:
    """Yield what of a patched text the policy doesn't allow: its name, what is allowed, and what it is."""
    before = dict(_parts(bare))
    for name, part in _parts(text):
        known = before.get(name, {})
        image = part.get("image")
        if isinstance(image, str) and image != known.get("image"):
            yield from _image(policy, name, image)
        if "build" in part:
            yield from _image(policy, name, _BUILT)
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
    for key in ("runtime", "gpus", "device_cgroup_rules"):
        if part.get(key):
            yield f"{key}: {part[key]}"
    yield from (f"device {each}" for each in _nodes(part) if gives_gpu_nodes(each))
    annotations = part.get("annotations")
    yield from (f"annotation {each}" for each in annotations or () if str(each).startswith(CDI_ANNOTATION))
    yield from (f"{name}={value}" for name, value in _environment(part) if gives_gpus(name, value))
    if (part.get("resources") or {}).get("claims"):
        yield f"claims: {part['resources']['claims']}"
    resources = (part.get("deploy") or {}).get("resources") or {}
    devices = (resources.get("reservations") or {}).get("devices")
    if devices:
        yield f"devices: {devices}"
    limits = (part.get("resources") or {}).get("limits") or {}
    yield from (f"{each}: {limits[each]}" for each in limits if GPU_RESOURCE.fullmatch(each))


def _nodes(part: dict[str, Any]) -> Iterator[str]:
    """Yield each device of a service: a node of the host, or a CDI name."""
    for each in part.get("devices") or ():
        yield str(each.get("source")) if isinstance(each, dict) else str(each).partition(":")[0]


def _environment(part: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield the variables of a service or container; None for a value that stands elsewhere."""
    stated = part.get("environment")
    if isinstance(stated, dict):
        yield from ((str(name), None if value is None else str(value)) for name, value in stated.items())
    elif isinstance(stated, list):
        parts = (str(each).partition("=") for each in stated)
        yield from ((name, value if equals else None) for name, equals, value in parts)
    for each in part.get("env") or ():
        if isinstance(each, dict):
            yield str(each.get("name")), None if "valueFrom" in each else str(each.get("value", ""))


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
    for key in ("privileged", "network_mode", "pid", "ipc", "uts", "userns_mode", "cgroup"):
        if key in part:
            yield key, str(part[key])
    for key in ("security_opt", "cap_add", "device_cgroup_rules", "volumes_from"):
        value = part.get(key)
        yield from ((key, str(each)) for each in (value if isinstance(value, list) else ()))
    for key in ("post_start", "pre_stop"):
        hooks = part.get(key)
        for each in hooks if isinstance(hooks, list) else ():
            if isinstance(each, dict) and "privileged" in each:
                yield "privileged", str(each["privileged"])
    build = part.get("build")
    if isinstance(build, dict):
        yield "privileged", str(bool(build.get("privileged") or build.get("entitlements")))
        yield "network_mode", str(build.get("network"))
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
        elif kind == "image":
            yield from _image(policy, "a volume", source)
        elif kind == "devices":
            yield from _gpus(policy, "the pod", f"resourceClaims: {source}")
        elif policy.token_span is not None:
            yield "the tokens of the API", f"none ({_place(policy.token_span)})", f"volume {source}"
    for name in sorted(_host_networks(text) - _host_networks(bare)):
        for allowed, span in refused_privilege(policy):
            yield f"the network {name}", f"{allowed} ({_place(span)})", "host"


def _sources(text: str) -> Iterator[tuple[str, str]]:
    """Yield each folder of the host, claim and image that something is mounted from, and each token of the API."""
    documents = documents_of(text)
    for document in documents:
        yield from (("folder", each) for each in _files_of_host(document))
        for service in (document.get("services") or {}).values():
            yield from _of_service(service if isinstance(service, dict) else {})
    for pod in pods_of(documents):
        for volume in pod.get("volumes") or ():
            if "hostPath" in volume:
                yield "folder", str((volume["hostPath"] or {}).get("path"))
            if "persistentVolumeClaim" in volume:
                yield "claim", str((volume["persistentVolumeClaim"] or {}).get("claimName"))
            if "image" in volume:
                yield "image", str((volume["image"] or {}).get("reference"))
            projected = (volume.get("projected") or {}).get("sources") or ()
            yield from (("token", str(volume.get("name"))) for each in projected if "serviceAccountToken" in each)
        yield from (("devices", str(each.get("name"))) for each in pod.get("resourceClaims") or ())


def _of_service(service: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for each in service.get("volumes") or ():
        known = each if isinstance(each, dict) else {"source": str(each).partition(":")[0]}
        source = str(known.get("source"))
        if known.get("type") == "image":
            yield "image", source
        elif known.get("type") == "bind" or is_path(source) or "/" in source:
            yield "folder", source
    yield from (("folder", each) for each in _nodes(service) if each.startswith("/"))
    build = service.get("build")
    if build is not None:
        yield "folder", str(build.get("context", ".") if isinstance(build, dict) else build)


def _files_of_host(document: dict[str, Any]) -> Iterator[str]:
    """Yield what named volumes, secrets and configs of a Compose file are on the host."""
    for key in ("secrets", "configs"):
        named = document.get(key)
        for each in named.values() if isinstance(named, dict) else ():
            if isinstance(each, dict) and isinstance(each.get("file"), str):
                yield each["file"]
    volumes = document.get("volumes")
    for each in volumes.values() if isinstance(volumes, dict) else ():
        options = each.get("driver_opts") if isinstance(each, dict) else None
        yield from volume_paths({str(name): str(value) for name, value in (options or {}).items()})


def _host_networks(text: str) -> set[str]:
    """Return the networks of a Compose file that are the host's by their name."""
    networks = documents_of(text)[0].get("networks")
    named = networks if isinstance(networks, dict) else {}
    return {
        key
        for key, each in named.items()
        if isinstance(each, dict) and "host" in (each.get("name", key), each.get("driver"))
    }


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
