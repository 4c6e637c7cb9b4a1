"""One thing that is wrong with a loader of a script, as its container reports it, and how it is put into words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from trainlaunch.diagnostics import Severity

Facts = Mapping[str, Any]


class ProbeFinding(NamedTuple):
    """A `defect`, where it stands, and what was measured of it.

    `loader` is the loader's number in its process, None where a finding is of the whole script. `place` is like
    train.py:48, empty where unknown. `facts` come from the job's container: nobody has checked them.
    """

    defect: str
    loader: int | None
    place: str
    facts: Facts


class Wording(NamedTuple):
    """A finding in words: the fact with both numbers, what to type, and the mechanism; its place is printed beside."""

    message: str
    fix: str
    why: str
    severity: Severity = Severity.WARNING


class Defect(NamedTuple):
    """One thing that probe can find: its code, and what puts a finding of it into words."""

    code: str
    name: str
    words: Callable[[Facts], Wording]


def defect(code: str) -> Callable[[Callable[[Facts], Wording]], Defect]:
    """Make a defect of a function; its name is the defect's, with underscores."""
    return lambda words: Defect(code, words.__name__.replace("_", "-"), words)
