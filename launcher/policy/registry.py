"""Where an image comes from, read as Docker and containerd read its name."""

from __future__ import annotations

DEFAULT_REGISTRY = "docker.io"
_ALIASES = {"index.docker.io": DEFAULT_REGISTRY, "registry-1.docker.io": DEFAULT_REGISTRY}


def parts_of(image: str) -> tuple[str, ...]:
    """Return the registry and the parts of the path of an image, without tag and digest."""
    name = image.partition("@")[0]
    first, slash, rest = name.partition("/")
    named = slash and ("." in first or ":" in first or first == "localhost" or first != first.lower())
    registry, path = (first.lower(), rest) if named else (DEFAULT_REGISTRY, name)
    path = path.partition(":")[0]
    registry = _ALIASES.get(registry, registry)
    if registry == DEFAULT_REGISTRY and "/" not in path:
        path = f"library/{path}"
    return (registry, *path.split("/"))


def in_registry(image: str, allowed: str) -> bool:
    """Return whether `image` lies in `allowed`, a registry or whole parts of a path in it: never half a part."""
    registry, *path = allowed.split("/")
    wanted = (_ALIASES.get(registry, registry), *path)
    return parts_of(image)[: len(wanted)] == wanted
