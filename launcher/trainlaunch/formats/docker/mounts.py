"""The value of --mount, which docker reads as one CSV record, and of --volume."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_FIELD = re.compile(r'(?<![^,])(?:"([^"]*(?:""[^"]*)*)"|([^,"]*))(?=,|\Z)')
_OTHER_NAMES = {"src": "source", "dst": "target", "destination": "target", "ro": "readonly"}


class Field(NamedTuple):
    """One `key=value` of a CSV record: the characters of the record that are its value. A bare word has no value."""

    key: str
    value: str | None
    first: int
    last: int


def csv_fields(record: str) -> list[Field]:
    """Return the fields of a record; raises ValueError where docker's reader of CSV would refuse it."""
    found: list[Field] = []
    at = 0
    while record:
        match = _FIELD.match(record, at)
        if not match:
            raise ValueError(f"{record} is no CSV record")
        quoted = match[1] is not None
        text = match[1].replace('""', '"') if quoted else match[2]
        key, equals, value = text.partition("=")
        last = match.end() - quoted
        first = min(match.start() + quoted + len(key) + 1, last)  # keys have no quotation marks
        found.append(Field(key, value if equals else None, first if equals else match.start() + quoted, last))
        at = match.end() + 1
        if match.end() >= len(record):
            break
    return found


def mount_key(field: Field) -> str:
    """Return a field's key by its first name: type, source, target, readonly."""
    return _OTHER_NAMES.get(field.key.lower(), field.key.lower())


def mount_fields(value: str) -> dict[str, str]:
    """Return the fields of a --mount by their first names; a bare one is `true`. Raises ValueError as csv_fields."""
    return {mount_key(each): "true" if each.value is None else each.value for each in csv_fields(value)}


def volume_options(value: str) -> dict[str, str]:
    """Return what a --mount says to its volume's driver; nothing where docker couldn't read it."""
    try:
        stated = [each.value or "" for each in csv_fields(value) if each.key.lower() == "volume-opt"]
    except ValueError:
        return {}
    return dict(each.partition("=")[::2] for each in stated)


def volume_paths(options: Mapping[str, str]) -> Iterator[str]:
    """Yield each path that a volume takes from the host, by its driver's options.

    The engine mounts those of the local driver from its own folder, which is /; another driver's are absolute. Another
    machine's export is as it is written.
    """
    given = [each.partition("=") for each in options.get("o", "").split(",")]
    device, binds = options.get("device", ""), any(name in {"bind", "rbind"} for name, _, _ in given)
    if device and (binds or options.get("type") not in {"tmpfs", "overlay"}):
        yield device if ":" in device else f"/{device.lstrip('/')}"
    for name, _, folders in given:
        if name.rstrip("+") in {"lowerdir", "datadir", "upperdir", "workdir"}:
            yield from filter(None, folders.split(":"))
    yield from (value for name, value in options.items() if name != "device" and value.startswith("/"))


def is_path(source: str) -> bool:
    """Return whether the source of a --volume is a path of the host; else it is a volume's name."""
    return source.startswith(("/", ".", "~", "\\")) or bool(re.match(r"[A-Za-z]:[\\/]", source))
