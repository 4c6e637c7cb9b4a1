"""Documents of a patched file, whatever their values are, and the containers that a patch adds beside the job's.

Those train nothing, and each needs a memory limit of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainlaunch.formats.quantities import bytes_of
from trainlaunch.render.apply_patch import documents_of
from trainlaunch.yamltree.emitter import yaml_block


def mapping(value: object) -> dict[str, Any]:
    """Return a mapping, an empty one of anything else."""
    return value if isinstance(value, dict) else {}


def listed(value: object) -> list[Any]:
    """Return a list, a scalar as the only item; nothing of a mapping and of null."""
    if isinstance(value, list):
        return value
    return [] if value is None or isinstance(value, dict) else [value]


def mappings(value: object) -> list[dict[str, Any]]:
    """Return the mappings of a list; nothing of anything else."""
    return [each for each in listed(value) if isinstance(each, dict)]


_LISTS = ("containers", "initContainers")


def without_sidecars(bare: str, text: str) -> str:
    """Return a patched file without the containers that `bare` doesn't have; any text without pods as it is."""
    documents, ours = documents_of(text), _names(bare)
    changed = False
    for pod in pods_of(documents):
        for name in _LISTS:
            kept = [each for each in pod.get(name) or () if each.get("name") in ours]
            changed = changed or len(kept) < len(pod.get(name) or ())
            if kept:
                pod[name] = kept
            else:
                pod.pop(name, None)
    return _written(documents) if changed else text


def only_service(text: str, name: str) -> str | None:
    """Return a Compose file with one of its services alone; None where it has no such service."""
    document, *_ = documents_of(text)
    service = document["services"].get(name)
    return None if service is None else _written([{**document, "services": {name: service}}])


def unlimited(bare: str, text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the names of added containers without a memory limit, with what they set in its place.

    One is enough to take the pod's own limit away, and to the kernel a limit of 0 is none.
    """
    ours = _names(bare)
    for each in containers_of(documents_of(text)):
        memory = ((each.get("resources") or {}).get("limits") or {}).get("memory")
        if each.get("name") not in ours and bytes_of(memory) <= 0:
            yield str(each.get("name")), None if memory is None else str(memory)


def containers_of(documents: Any) -> Iterator[dict[str, Any]]:
    """Yield each container of each pod, also those that run before the others."""
    for pod in pods_of(documents):
        for name in _LISTS:
            yield from pod.get(name) or ()


def _written(documents: list[dict[str, Any]]) -> str:
    """Return documents as a text that is only read back."""
    return "---\n".join(f"{yaml_block(each)}\n" for each in documents)


def _names(text: str) -> set[str]:
    return {each["name"] for each in containers_of(documents_of(text))}


def pods_of(value: Any) -> Iterator[dict[str, Any]]:
    """Yield each pod's spec in a document, wherever its kind has it."""
    if isinstance(value, list):
        for each in value:
            yield from pods_of(each)
    elif isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            yield value
        for each in value.values():
            yield from pods_of(each)
