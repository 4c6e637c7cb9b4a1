"""Where an image comes from, read as Docker and containerd read its name."""

from __future__ import annotations

import re

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


def registry_pattern(allowed: str) -> str:
    """Return an RE2 pattern of the images that lie in `allowed`, as `in_registry` says; an API server knows RE2."""
    registry, *path = allowed.split("/")
    registry = _ALIASES.get(registry, registry)
    end = "(?:[/:@].*)?" if len(path) > (1 if registry == DEFAULT_REGISTRY else 0) else "/.*"
    inside = "/".join(map(re.escape, path))
    if registry != DEFAULT_REGISTRY:
        return f"(?i:{re.escape(registry)}){'/' + inside if path else ''}{end}"
    host = f"(?i:{'|'.join(map(re.escape, (DEFAULT_REGISTRY, *_ALIASES)))})/"
    first = "[a-z0-9][-a-z0-9_]*"  # no registry's name: it has no dot, no port and no capital, and isn't localhost
    if not path:
        return f"{host}.*|{first}(?:[:@][^/]*)?|{first}/.*"
    short = f"|(?:{host})?[^/]+" if path == ["library"] else ""
    if path[0] == "library" and len(path) > 1:
        short = f"|(?:{host})?{'/'.join(map(re.escape, path[1:]))}(?:[:@][^/]*)?" if len(path) == 2 else ""
    return f"(?:{host})?{inside}{end}{short}"
