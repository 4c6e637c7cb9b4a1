"""What `doctor` is handed, told apart by what it is: a log, an inspection, a job file, or a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from trainlaunch.cli.arguments.job_arguments import is_handed

_HEAD_BYTES = 64 * 1024
_YAML = frozenset({".yaml", ".yml"})
# What `docker inspect` and a cluster's objects have near their beginning; a line of a JSON log has none of them.
_INSPECTED = (b'"OOMKilled"', b'"RestartCount"', b'"apiVersion"')


class DoctorThings(NamedTuple):
    """The names that were handed, by what they are."""

    runs: tuple[str, ...]
    logs: tuple[str, ...]
    inspections: tuple[str, ...]
    jobs: tuple[str, ...]


def told_apart(names: Iterable[str]) -> DoctorThings:
    """Return names by what they are. Nothing but the beginning of a file is read; what is no file names a run."""
    found: dict[str, list[str]] = {each: [] for each in DoctorThings._fields}
    for name in names:
        found[_kind(name)].append(name)
    return DoctorThings(*map(tuple, found.values()))


def _kind(name: str) -> str:
    if is_handed(name):
        return "logs"
    path = Path(name)
    try:
        if not path.is_file():
            return "runs"
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except (OSError, ValueError):  # which its reader says
        return "jobs" if path.suffix in _YAML else "logs"
    as_json = head.lstrip().startswith((b"[", b"{")) and any(each in head for each in _INSPECTED)
    as_yaml = path.suffix in _YAML and (b"\napiVersion: " in b"\n" + head or b"\n- apiVersion: " in b"\n" + head)
    if as_json or as_yaml:
        return "inspections"
    return "jobs" if path.suffix in _YAML else "logs"
