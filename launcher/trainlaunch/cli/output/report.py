"""Diagnostics as text: a frame with the line of the file, or JSON."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from trainlaunch.cli.output.streams import TextStyle, wrapped
from trainlaunch.diagnostics import Diagnostic, Severity, Span
from trainlaunch.repository.regular_files import is_of_shell, read_regular
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.sanitize import SafeText, one_line, sanitize

MAX_QUOTED = 8_000  # characters of a sentence: a traceback, a command to paste
MAX_COLUMNS_SHOWN = 240  # columns of a line that an error is in
SCHEMA_VERSION = 3  # of every JSON document that trainlaunch prints
_MAX_BYTES = 4 * 1024 * 1024  # of a file whose line is quoted
# Inside JSON's strings alone: what a terminal obeys beyond ASCII's own controls, and CI's `##[`.
_OBEYED = r"[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|#(?=#(?:\[|vso\[|teamcity\[))"
_COLOURS = {"error": "31", "warning": "33", "info": "36", "cause": "31", "note": "36"}


def framed(diagnostic: Diagnostic, look: TextStyle, *, text: str | None = None) -> str:
    """Return the full form: headline, place, the line itself, why, fix and where to read more.

    `text` is the file's, where the caller has it; else the line is read from the file.
    """
    lines = [headline(diagnostic.severity.value, diagnostic.code, diagnostic.message, look)]
    if diagnostic.span is not None:
        # The line of a mistake in secrets may hold the secret itself.
        secret = diagnostic.field.partition(".")[0] == "secrets"
        lines += [sanitize(f"  --> {diagnostic.span}")] if secret else _excerpt(diagnostic.span, text, look.columns)
    lines += parts({"why": diagnostic.why, "fix": diagnostic.fix}, look)
    lines += [help_line(diagnostic.code)]
    return SafeText("\n".join(lines))


def headline(kind: str, code: str, message: str, look: TextStyle) -> str:
    """Return the first line of a frame: what kind of thing it is, its code and its sentence."""
    head = f"{kind}[{code}]"
    text = wrapped(f"{head}: {sanitize(_short(message))}", look.columns, 2)
    return text.replace(head, f"\x1b[1;{_COLOURS[kind]}m{head}\x1b[0m", 1) if look.colour else text


def parts(told: Mapping[str, str], look: TextStyle) -> list[str]:
    """Return the lines below the place of a frame, each with its name; what is empty has none."""
    named = (f"   = {name}: {sanitize(_short(text))}" for name, text in told.items() if text)
    return [wrapped(each, look.columns, 8) for each in named]


def help_line(code: str) -> str:
    """Return the last line of a frame: the command that explains its code."""
    return f"   = help: trainlaunch explain {code}"


def unified_diff(file: str, have: str, now: str) -> Iterator[str]:
    """Yield the lines of a diff that `patch -p1` takes."""
    import difflib  # few results are diffs

    name = file.lstrip("/")
    lines = difflib.unified_diff(list(io.StringIO(have)), list(io.StringIO(now)), f"a/{name}", f"b/{name}")
    yield from (each if each.endswith("\n") else f"{each}\n\\ No newline at end of file\n" for each in lines)


def annotation(diagnostic: Diagnostic) -> str:
    """Return the line by which a GitHub workflow shows a finding at its place."""
    kind = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}[diagnostic.severity]
    span, place = diagnostic.span, ""
    if span is not None:
        file = span.file.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        place = f"file={file.replace(':', '%3A').replace(',', '%2C')},line={span.line},"
    text = (
        sanitize(f"{diagnostic.message}; {diagnostic.fix}")
        .replace("%", "%25")
        .replace("\r", "%0D")
        .replace("\n", "%0A")
    )
    return f"::{kind} {place}title={diagnostic.code}::{text}"


def concise(diagnostic: Diagnostic) -> str:
    """Return a finding as one line: place, severity, code and message."""
    place = f"{diagnostic.span}: " if diagnostic.span is not None else ""
    return one_line(f"{place}{diagnostic.severity.value} {diagnostic.code}: {diagnostic.message}")


def printable(diagnostic: Diagnostic) -> Diagnostic:
    """Return a finding about somebody else's text whose words hold no control character for a terminal to obey."""
    message, fix, why = map(one_line, (diagnostic.message, diagnostic.fix, diagnostic.why))
    return diagnostic._replace(message=message, fix=fix, why=why)


def as_json(diagnostics: Iterable[Diagnostic]) -> list[Mapping[str, object]]:
    """Return findings as plain values with stable keys; positions are 1-based, ends exclusive."""
    return [
        {
            "code": each.code,
            "severity": each.severity.value,
            "message": each.message,
            "why": each.why,
            "fix": each.fix,
            "field": each.field,
            "span": span_json(each.span),
        }
        for each in diagnostics
    ]


def document(content: Mapping[str, object]) -> str:
    """Return a JSON document with its schema version, as every `-o json` prints it."""
    import json  # few results are JSON

    text = json.dumps({"schema_version": SCHEMA_VERSION, **content}, indent=2, ensure_ascii=False)
    return re.sub(_OBEYED, lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def _short(text: str) -> str:
    """Return a part of a frame, without its middle where it quotes what fills a terminal for minutes."""
    return text if len(text) <= MAX_QUOTED else f"{text[: MAX_QUOTED // 2]} … {text[-MAX_QUOTED // 4 :]}"


def _excerpt(span: Span, whole: str | None, columns: int | None) -> list[str]:
    lines: list[str] = [sanitize(f"  --> {span}")]
    text = _source_line(span, whole)
    if text is None:
        return lines
    last = span.end_column if span.end_line == span.line else len(text) + 1
    marked = max(1, min(last, len(text) + 1) - span.column)
    gutter = " " * len(str(span.line))
    most = MAX_COLUMNS_SHOWN if columns is None else min(MAX_COLUMNS_SHOWN, columns - len(f"{gutter} | …"))
    first = max(0, span.column - 1 - most // 2) if len(text) > most else 0
    shown = _one_wide(text[first : first + most])
    if len(text) > most:
        shown = ("…" + shown[1:]) * bool(first) or shown
        shown += "…" * (first + most < len(text))
    before = span.column - 1 - first
    marks = "^" * min(marked, most - before)
    return [*lines, f"{gutter} |", f"{span.line} | {shown}", f"{gutter} | {' ' * before}{marks}"]


def _one_wide(text: str) -> str:
    """Return a line with one printable character for each of its own, so that marks below it stand right."""
    return "".join(each if each.isprintable() else " " if each == "\t" else "\ufffd" for each in text)


def _source_line(span: Span, whole: str | None) -> str | None:
    """Return the line that a span starts on; None where it is not a file or can't be read as text."""
    if whole is not None:  # lines end at \\n alone there
        lines = whole.split("\n")
        return lines[span.line - 1].rstrip("\r") if span.line <= len(lines) else None
    path = Path(span.file)
    if not is_of_shell(path) and not ITS_OWN.holds(path, path):
        return None  # a place like `--set image=…` is the name of a link too, where somebody makes it
    try:
        lines = re.split(r"\r\n|\r|\n", read_regular(path, _MAX_BYTES).decode("utf-8-sig"))
    except (OSError, ValueError):
        return None
    return lines[span.line - 1] if span.line <= len(lines) else None


def span_json(span: Span | None) -> Mapping[str, object] | None:
    """Return a place as plain values, None for none."""
    if span is None:
        return None
    return {
        "file": span.file,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }
