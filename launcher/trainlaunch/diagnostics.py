"""Diagnostics as values: what is wrong, where, why, and the value to type.

Codes are one number space (`TLnnn`) and are never reused: 1xx job file, 2xx CPU, memory and /dev/shm, 3xx text written
by hand, 4xx the target does not support it, 5xx environment and engine, 6xx symptoms of a dead run, 7xx what was
measured of a script, 9xx our own bugs.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple, Protocol


class Severity(enum.Enum):
    """How much a finding matters: an error stops, a warning and an info are printed."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


SEVERITIES = (Severity.INFO, Severity.WARNING, Severity.ERROR)  # the mildest first


def at_most(severity: Severity, most: Severity) -> Severity:
    """Return a severity, or `most` where it is graver."""
    return min(severity, most, key=SEVERITIES.index)


class Span(NamedTuple):
    """A place in a file; lines and columns are 1-based, columns count characters, the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def span(self) -> Span:
        """The place itself, as of anything that stands at one."""
        return self


class Edit(NamedTuple):
    """A change of a text as data: what stands at `span` becomes `text`; an empty span is an insertion."""

    span: Span
    text: str


class Diagnostic(NamedTuple):
    """One finding. `message` has the fact with both numbers, `why` the mechanism, `fix` the value to type."""

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


class Placed(Protocol):
    """Anything that stands at a place of a file."""

    @property
    def span(self) -> Span:
        """The place."""


class Report:
    """An ordered set of diagnostics; the same finding at the same place counts once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Span | None, str], Diagnostic] = {}

    def __len__(self) -> int:
        return len(self._found)

    def take(self, diagnostic: Diagnostic) -> None:
        """Add a finished diagnostic."""
        self._found.setdefault((diagnostic.code, diagnostic.span, diagnostic.message), diagnostic)

    def add(self, code: str, at: Placed | None, *, message: str, fix: str, why: str = "", field: str = "") -> None:
        """Add an error at a node's place; None where the file has no place for it."""
        span = at.span if at is not None else None
        self.take(Diagnostic(code=code, message=message, fix=fix, why=why, span=span, field=field))

    def found(self) -> tuple[Diagnostic, ...]:
        """Return all findings as they came."""
        return tuple(self._found.values())

    def sorted(self) -> tuple[Diagnostic, ...]:
        """Return all findings by file, line and column; those without a place come first."""
        return tuple(sorted(self._found.values(), key=_order))


def _order(diagnostic: Diagnostic) -> tuple[str, int, int, str, str]:
    span = diagnostic.span
    if span is None:
        return ("", 0, 0, diagnostic.code, diagnostic.message)
    return (span.file, span.line, span.column, diagnostic.code, diagnostic.message)
