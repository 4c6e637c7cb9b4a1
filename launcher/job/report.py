"""Collects the findings of one job file, so that all of its errors come at once and in the order of the file."""

from __future__ import annotations

from typing import Protocol

from launcher.diagnostics import Diagnostic, Span


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
