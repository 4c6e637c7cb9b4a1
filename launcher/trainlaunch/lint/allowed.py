"""Findings that a comment of the text allows: `# trainlaunch: allow=TL304 reason`, on its line or above it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from trainlaunch.diagnostics import Diagnostic, Severity, Span
from trainlaunch.kinds import CONFIG_MAP
from trainlaunch.rules.sources.source_text import DEVCONTAINER, KUBERNETES, SourceText, TextFinding, at, below, text_at
from trainlaunch.yamltree.tolerant import Scalar

_ALLOW = re.compile(r"(?:^|(?<=\s))(?:#|//|<!--)\s*trainlaunch:\s*allow=([\w-]+)(.*)")


class _Comment(NamedTuple):
    line: int
    span: Span
    what: str
    reason: str


def allowed(file: SourceText, findings: Sequence[TextFinding]) -> Iterator[TextFinding]:
    """Yield the findings that no comment allows, and those about the comments themselves."""
    if "trainlaunch:" not in file.text or file.kind == DEVCONTAINER:
        yield from findings
        return
    lines = file.text.split("\n")
    comments = tuple(_comments(file, lines))
    used: set[_Comment] = set()
    for finding in findings:
        names = {finding.diagnostic.code.lower(), finding.name}
        by = {each for each in comments if each.what.lower().replace("_", "-") in names}
        by &= set(_at(lines, finding, comments))
        used |= by
        if not any(each.reason for each in by):
            yield finding
    yield from _of_comments(comments, used)


def _comments(file: SourceText, lines: Iterable[str]) -> Iterator[_Comment]:
    carried = tuple(_carried(file))
    begin = 0
    for number, line in enumerate(lines, start=1):
        match = _ALLOW.search(line) if "trainlaunch:" in line else None
        if match and not any(begin + match.start() in each for each in carried):
            span = file.source.span(begin + match.start(), begin + len(line.rstrip()))
            yield _Comment(number, span, match[1], match[2].rstrip().removesuffix("-->").strip())
        begin += len(line) + 1


def _carried(file: SourceText) -> Iterator[range]:
    """Yield where the text only carries files of others, whose comments are theirs: the data of ConfigMaps."""
    for node in (each for root in file.nodes for each in below(root)) if file.kind == KUBERNETES else ():
        if text_at(node, "kind") == CONFIG_MAP.name:
            held = below(at(node, "data"))
            yield from (range(each.start, each.end) for each in held if isinstance(each, Scalar))


def _at(lines: Sequence[str], finding: TextFinding, comments: Iterable[_Comment]) -> Iterator[_Comment]:
    """Yield the comments on a finding's line, and on the comment lines right above its statement."""
    span = finding.diagnostic.span
    if span is None:
        return
    first = span.line - 1
    while first and lines[first - 1].rstrip().endswith("\\"):
        first -= 1
    above = first
    while above and re.match(r"\s*(?:#|//|<!--)", lines[above - 1]):
        above -= 1
    yield from (each for each in comments if each.line == span.line or above < each.line <= first)


def _of_comments(comments: Iterable[_Comment], used: set[_Comment]) -> Iterator[TextFinding]:
    for each in comments:
        if each in used and not each.reason:
            message, fix = f"allow={each.what} has no reason", "write the reason behind it, on the same line"
            diagnostic = Diagnostic("TL391", message, fix, span=each.span)
            yield TextFinding(diagnostic, "allow-without-reason")
        elif each not in used:
            message, fix = f"allow={each.what} allows nothing: no such finding is here", "delete the comment"
            diagnostic = Diagnostic("TL392", message, fix, severity=Severity.WARNING, span=each.span)
            yield TextFinding(diagnostic, "allow-unused")
