"""One thing that is wrong with a loader of a script, as its container reports it, and all that it can be."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure import findings


class Finding(NamedTuple):
    """A `defect`, where it stands, and what was measured of it.

    `loader` is the loader's number in its process, None where a finding is of the whole script. `place` is like
    train.py:48, empty where unknown. `facts` come from the job's container: nobody has checked them.
    """

    defect: str
    loader: int | None
    place: str
    facts: Mapping[str, Any]


@cache
def defects() -> tuple[str, ...]:
    """Return the name of every defect that probe knows, in order."""
    return tuple(sorted(each.name.replace("_", "-") for each in pkgutil.iter_modules(findings.__path__)))


def module_of(defect: str) -> ModuleType | None:
    """Return the module of a defect, None where there is none of that name."""
    if defect not in defects():  # a name from a container is no path to import
        return None
    return importlib.import_module(f"{findings.__name__}.{defect.replace('-', '_')}")


def manual_of(defect: str) -> Explanation | None:
    """Return the manual of a defect's code, None where no defect has that name."""
    found = vars(module_of(defect)).items() if defect in defects() else ()
    return next((value for name, value in found if isinstance(value, Explanation) and value.code == name), None)


def diagnosed(finding: Finding) -> Diagnostic | None:
    """Return a finding in words, None where its defect is unknown; facts that don't fit cost only the numbers."""
    module, manual = module_of(finding.defect), manual_of(finding.defect)
    if module is None or manual is None:
        return None
    try:
        said: Diagnostic = module.said(finding)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        fix = f"`trainlaunch explain {manual.code}` says what to write instead"
        return Diagnostic(manual.code, manual.title.rstrip("."), fix, severity=Severity.WARNING)
    return said
