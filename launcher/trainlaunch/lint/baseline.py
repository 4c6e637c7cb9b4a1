"""A baseline: findings that a repository had on a day, so that only new ones count."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator

from trainlaunch.lint.judge import Linted
from trainlaunch.rules.written.model import TextFinding

VERSION = 1


def key_of(finding: TextFinding, text: str) -> str:
    """Return what stays of a finding when lines above it come and go: file, code, and the words of its line."""
    span = finding.diagnostic.span
    lines = text.split("\n")
    line = lines[span.line - 1].strip() if span is not None and span.line <= len(lines) else ""
    digest = hashlib.sha256(line.encode()).hexdigest()[:12]
    return f"{span.file if span is not None else ''} {finding.diagnostic.code} {digest}"


def baseline_text(linted: Iterable[Linted]) -> str:
    """Return the file that holds all findings of these texts."""
    counts = Counter(key_of(finding, each.text) for each in linted for finding in each.findings)
    return json.dumps({"version": VERSION, "findings": dict(sorted(counts.items()))}, indent=1) + "\n"


def read_baseline(text: str) -> Counter[str]:
    """Return the findings of a baseline by key, each as often as it has it. Raises ValueError for another file."""
    content = json.loads(text)
    findings = content.get("findings") if isinstance(content, dict) and content.get("version") == VERSION else None
    if not isinstance(findings, dict) or not all(isinstance(each, int) for each in findings.values()):
        raise ValueError("no baseline of trainlaunch lint")
    return Counter(findings)


def new_findings(linted: Linted, known: Counter[str]) -> Iterator[TextFinding]:
    """Yield the findings that a baseline doesn't have; takes those that it has out of it."""
    for finding in linted.findings:
        key = key_of(finding, linted.text)
        if known[key] > 0:
            known[key] -= 1
        else:
            yield finding
