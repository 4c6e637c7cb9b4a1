"""Diagnostics as values: what is wrong, where, why, and the value to type.

Codes are one number space (`TLnnn`) and are never reused: 1xx job file, 2xx CPU, memory and /dev/shm, 3xx health check,
4xx the target can't say it, 5xx environment and engine, 6xx symptoms of a dead run, 9xx our own bugs.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple


class Severity(enum.Enum):
    """How much a finding matters: an error stops, a warning and an info are printed."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Span(NamedTuple):
    """A place in a file; lines and columns are 1-based, columns count characters, the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Diagnostic(NamedTuple):
    """One finding. `message` states the fact with both numbers, `why` the mechanism, `fix` the value to type."""

    code: str
    message: str
    fix: str
    why: str = ""
    severity: Severity = Severity.ERROR
    span: Span | None = None
    field: str = ""


def errors_among(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return only those that stop the program."""
    return tuple(each for each in diagnostics if each.severity is Severity.ERROR)
