"""Values of a patched text, whatever they are, as the mapping or list that a reader takes them for."""

from __future__ import annotations

from typing import Any


def mapping(value: object) -> dict[str, Any]:
    """Return a mapping, an empty one of anything else."""
    return value if isinstance(value, dict) else {}


def listed(value: object) -> list[Any]:
    """Return a list, a scalar as the only item; nothing of a mapping and of null."""
    if isinstance(value, list):
        return value
    return [] if value is None or isinstance(value, dict) else [value]
