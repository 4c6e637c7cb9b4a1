"""A short hash of what a plan asks for: a Job's name carries it, since a Job's template can't change in the cluster."""

from __future__ import annotations

import hashlib

from launcher.job.spec import JobSpec
from launcher.plan.launch_plan import SharedMemory

RENDERING_FORMAT = 1  # raised when the same plan gives other bytes; the tool's version is not in any rendering


def input_hash(job: JobSpec, *, name: str, num_workers: int, shm: SharedMemory, argv: tuple[str, ...]) -> str:
    """Return 8 hex digits that change with what is asked for, with what was decided from it, and with the format.

    Places in files, how options were typed, and a policy, whose defaults are fields, don't count. Nor do fields that
    are empty, or as the spec's class has them by itself: a new field changes no hash of a job that doesn't state it.
    """
    asked = _fields(job._replace(origins={}, path="", sets=(), policy=None, patch=None))
    patch = (job.patch.asked,) if job.patch else ()
    decided = (RENDERING_FORMAT, asked, name, num_workers, shm.size.value, shm.need, argv, *patch)
    return hashlib.sha256(repr(decided).encode()).hexdigest()[:8]


def _fields(record: tuple[object, ...]) -> tuple[tuple[str, object], ...]:
    """Return the stated fields of a NamedTuple with their values, each in a form that every Python writes the same."""
    names, usual = getattr(record, "_fields"), getattr(record, "_field_defaults")  # noqa: B009 - of any NamedTuple
    pairs = zip(names, record, strict=True)
    return tuple((name, _plain(value)) for name, value in pairs if value != usual.get(name) and not _empty(value))


def _empty(value: object) -> bool:
    """Whether a field says nothing; the number 0 does say something: no workers, no grace."""
    return value is None or value is False or (value.__class__ is not int and not value)


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return _fields(value) if hasattr(value, "_fields") else tuple(map(_plain, value))
    if isinstance(value, dict):
        return tuple((key, _plain(item)) for key, item in value.items())
    return value
