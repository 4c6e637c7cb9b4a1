"""The findings of `lint` as text, one line each, JSON, SARIF, or annotations of a GitHub workflow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from trainlaunch import __version__
from trainlaunch.cli.output.report import annotation, as_json, concise, document, framed, printable, span_json
from trainlaunch.cli.output.streams import Streams, style_of
from trainlaunch.diagnostics import Severity
from trainlaunch.manuals import manuals

if TYPE_CHECKING:
    from trainlaunch.lint.linter import Linted
    from trainlaunch.rules.sources.source_text import TextFinding

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def report(results: Sequence[Linted], output: str, streams: Streams, *, to_stderr: bool) -> None:
    """Print what was found, and the sum on stderr; `to_stderr` where stdout holds a text that was fixed."""
    findings = [finding for each in results for finding in each.findings]
    write = (lambda text: streams.say(text.removesuffix("\n"))) if to_stderr else streams.result
    if output == "json":
        write(document({"findings": [_json(each) for each in findings]}))
    elif output == "sarif":
        write(_sarif(findings))
    elif output in {"github", "concise"}:
        line = annotation if output == "github" else concise
        write("".join(f"{line(each.diagnostic)}\n" for each in findings))
    else:
        style = style_of(streams.err if to_stderr else streams.out)
        for each in results:
            for finding in each.findings:
                write(framed(printable(finding.diagnostic), style, text=each.text) + "\n\n")
    streams.finish()
    if output in {"text", "concise"}:
        streams.say(_sum(results, findings))


def _sum(results: Sequence[Linted], findings: Iterable[TextFinding]) -> str:
    counts = Counter(each.severity for each in findings)
    told = ", ".join(f"{counts[each]} {each.value}s" for each in Severity if counts[each]) or "no findings"
    fixable = sum(finding.safe for each in results for finding in each.findings)
    return f"linted {len(results)} files: {told}" + (f" ({fixable} that --fix repairs)" if fixable else "")


def _json(finding: TextFinding) -> Mapping[str, object]:
    (content,) = as_json([finding.diagnostic])
    edits = [{"span": span_json(each.span), "text": each.text} for each in finding.edits]
    return {"code": content["code"], "name": finding.name, **content, "edits": edits, "safe": finding.safe}


def _sarif(findings: Sequence[TextFinding]) -> str:
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
