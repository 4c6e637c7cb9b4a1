"""What a policy says of the parts that only a patch brings: other services and containers, devices, images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from launcher.diagnostics import Span
from launcher.formats.engine_values import engine_bytes
from launcher.formats.gpus import GPU_RESOURCE
from launcher.formats.quantities import parse_quantity, quantity_text
from launcher.job.ceilings import Limit, Policy
from launcher.policy.registry import in_registry
from launcher.render.patched import documents_of
from launcher.units import format_size
from launcher.verify.sidecars import containers_of


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
    resources = (part.get("deploy") or {}).get("resources") or {}
    devices = (resources.get("reservations") or {}).get("devices")
    if devices:
        yield f"devices: {devices}"
    limits = (part.get("resources") or {}).get("limits") or {}
    yield from (f"{each}: {limits[each]}" for each in limits if GPU_RESOURCE.fullmatch(each))


def _gpus(policy: Policy, name: str, grant: str) -> Iterator[tuple[str, str, str]]:
    for ceiling in ("gpus", "total_gpus"):
        most = policy.max.get(ceiling)
        if most is not None:
            allowed = f"resources.gpus up to max.{ceiling} {most.value} ({_place(most.span)})"
            yield f"the devices of {name}", allowed, grant
            return


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
