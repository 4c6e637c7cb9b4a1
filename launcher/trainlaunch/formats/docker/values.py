"""What the values of single flags say, as docker's command line reads them, --mount and --volume among them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from trainlaunch.formats.workload import GpuRequest
from trainlaunch.gpu_names import ALL_GPUS

_CPUS = re.compile(r"\+?(\d{1,9})?(?:\.(\d{0,9}))?", re.ASCII)
_ULIMIT = r"([a-z]+)=(-?[0-9]{1,18})(?::(-?[0-9]{1,18}))?"
TRUE, FALSE = frozenset({"1", "t", "T", "TRUE", "true", "True"}), frozenset({"0", "f", "F", "FALSE", "false", "False"})

_FIELD = re.compile(r'(?<![^,])(?:"([^"]*(?:""[^"]*)*)"|([^,"]*))(?=,|\Z)')
_OTHER_NAMES = {"src": "source", "dst": "target", "destination": "target", "ro": "readonly"}


def cpu_thousandths(text: str) -> int | None:
    """Return thousandths of a CPU: `1.5` is 1500. None for no number, or a part of a thousandth."""
    match = _CPUS.fullmatch(text)
    if not match or not (match[1] or match[2]):
        return None
    fraction = (match[2] or "").rstrip("0")
    return int(match[1] or 0) * 1000 + int(fraction.ljust(3, "0")) if len(fraction) <= 3 else None


def whole_number(text: str) -> int | None:
    """Return an integer, None for anything else."""
    return int(text) if re.fullmatch(r"[-+]?[0-9]{1,18}", text, re.ASCII) else None


def ulimit(text: str) -> tuple[str, int, int] | None:
    """Return name, soft and hard limit: `nofile=1024:2048`, `core=0`."""
    match = re.fullmatch(_ULIMIT, text, re.ASCII)
    return (match[1], int(match[2]), int(match[3] or match[2])) if match else None


def gpu_request(text: str) -> GpuRequest | None:
    """Return what `--gpus` asks for, a CSV record in which a bare number is a count and the last one holds.

    A list of devices that isn't quoted is therefore one id and counts; the engine refuses ids and a count at once.
    """
    try:
        fields = csv_fields(text)
    except ValueError:
        return None
    count: str | None = None
    ids: tuple[str, ...] = ()
    seen: set[str] = set()
    for field in fields:
        if field.value is None:
            count = field.key
            continue
        if field.key in seen or field.key not in {"count", "device", "driver", "capabilities", "options"}:
            return None
        seen.add(field.key)
        if field.key == "count":
            count = field.value
        elif field.key == "device":
            ids = tuple(field.value.split(","))
    if count == ALL_GPUS:
        return GpuRequest(0, ids, all=True)
    number = whole_number(count) if count is not None else 0 if ids else 1
    return None if number is None else GpuRequest(0, ids, all=True) if number == -1 else GpuRequest(number, ids)


class CsvField(NamedTuple):
    """One `key=value` of a CSV record: the characters of the record that are its value. A bare word has no value."""

    key: str
    value: str | None
    first: int
    last: int


def csv_fields(record: str) -> list[CsvField]:
    """Return the fields of a record; raises ValueError where docker's reader of CSV would refuse it."""
    found: list[CsvField] = []
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
        found.append(CsvField(key, value if equals else None, first if equals else match.start() + quoted, last))
        at = match.end() + 1
        if match.end() >= len(record):
            break
    return found


def mount_key(field: CsvField) -> str:
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
