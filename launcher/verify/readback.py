"""What a final text says, in the words of the plan: bytes, seconds, literal strings; nothing escaped."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from launcher.verify.plain import ReadMount

_SIZE = re.compile(r"(\d+)(Ki|Mi|Gi|[kmg])?")
_POWERS = {None: 0, "k": 1, "Ki": 1, "m": 2, "Mi": 2, "g": 3, "Gi": 3}
_CPUS = re.compile(r"(\d+)(?:(m)|\.(\d{1,3}))?")


class ReadBack(NamedTuple):
    """One rendering, read by code that shares nothing with the renderers.

    `process` is what the kernel starts: entrypoint and arguments. `shm_size` is None where /dev/shm would get another
    size than the text pretends. `secrets` maps a variable to its source. `rest` is all that has no field of its own.
    """

    name: str | None
    image: str | None
    pull: str | None
    process: tuple[str, ...]
    env: Mapping[str, str]
    secrets: Mapping[str, str]
    labels: Mapping[str, str]
    shm_size: int | None
    memory: int | None
    cpus: int | None
    devices: Mapping[str, str]
    mounts: tuple[ReadMount, ...]
    health: str | None
    health_times: Mapping[str, int]
    user: str | None
    groups: tuple[str, ...]
    working_dir: str | None
    read_only: bool
    stop_signal: str | None
    stop_timeout: int | None
    ulimits: Mapping[str, tuple[int, int]]
    rest: Mapping[str, object]


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads by libyaml where PyYAML has it, since wrappers make long texts; refuses a key that stands twice.

    PyYAML would keep the last of two keys; Compose refuses the file, and so does `kubectl --validate=strict`.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping; raises ConstructorError where a key stands twice."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key.value} twice", key.start_mark)
            seen.add(key.value)
        made: dict[Any, Any] = super().construct_mapping(node, deep)
        return made


def read_documents(text: str) -> list[Any]:
    """Return the documents in their order; raises yaml.YAMLError where two readers might take one differently."""
    return list(yaml.load_all(text, _Loader))


def read_size(text: str | None) -> int | None:
    """Return the bytes of a size as both Docker and Kubernetes read it, or None where the two might differ."""
    match = _SIZE.fullmatch(text or "")
    return int(match[1]) * 1024 ** _POWERS[match[2]] if match else None


def read_cpus(text: str | None) -> int | None:
    """Return thousandths of a CPU: `1500m`, `1.5`."""
    match = _CPUS.fullmatch(text or "")
    if not match:
        return None
    return int(match[1]) if match[2] else int(match[1]) * 1000 + int((match[3] or "").ljust(3, "0"))


def absolute(path: str | None, folder: Path) -> str | None:
    """Return `path` without dots, read from `folder` where it is relative."""
    return None if path is None else os.path.normpath(folder.absolute() / path)


def flat(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield each leaf of a parsed document with its dotted path; empty lists and mappings say nothing."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from flat(item, f"{path}.{index}")
    else:
        yield path, value
