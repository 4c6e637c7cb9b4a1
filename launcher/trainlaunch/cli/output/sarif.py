"""Findings of lint as SARIF, for code scanning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from trainlaunch import __version__
from trainlaunch.diagnostics import Severity
from trainlaunch.manuals import manuals
from trainlaunch.rules.sources.source_text import TextFinding

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(findings: Sequence[TextFinding]) -> str:
    """Return a SARIF log of one run; a finding's fix is in it where it has edits."""
    import json

    known = manuals()
    codes = sorted({each.diagnostic.code for each in findings})
    rules = [{"id": code, "name": known[code].name, "shortDescription": {"text": known[code].title}} for code in codes]
    driver = {"name": "trainlaunch", "version": __version__, "rules": rules}
    results = [_result(each, codes) for each in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    log = {"$schema": _SARIF, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _result(finding: TextFinding, codes: Sequence[str]) -> Mapping[str, object]:
    diagnostic = finding.diagnostic
    span = diagnostic.span
    place: dict[str, object] = {}
    if span is not None:
        uri = _uri(span.file)
        region = {
            "startLine": span.line,
            "startColumn": span.column,
            "endLine": span.end_line,
            "endColumn": span.end_column,
        }
        place = {"locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}]}
    if finding.edits and span is not None:
        replacements = [
            {
                "deletedRegion": {
                    "startLine": each.span.line,
                    "startColumn": each.span.column,
                    "endLine": each.span.end_line,
                    "endColumn": each.span.end_column,
                },
                "insertedContent": {"text": each.text},
            }
            for each in finding.edits
        ]
        change = {"artifactLocation": {"uri": _uri(span.file)}, "replacements": replacements}
        place["fixes"] = [{"description": {"text": diagnostic.fix}, "artifactChanges": [change]}]
    text = "; ".join(each for each in (diagnostic.message, diagnostic.why, diagnostic.fix) if each)
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": codes.index(diagnostic.code),
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        **place,
    }


def _uri(file: str) -> str:
    return quote("stdin" if file == "-" else file)
