"""Reads and judges one text: its findings, what a comment or baseline takes out, and the text with its safe fixes made.

A training script is parsed, and never run or imported. A baseline has the findings that a repository had on a day, so
that only new ones count.
"""

from __future__ import annotations

import codecs
import errno
import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from trainlaunch.diagnostics import Diagnostic, Severity, Span, at_most
from trainlaunch.job.ceilings import Policy
from trainlaunch.lint.allowed import allowed
from trainlaunch.lint.container_processes import with_processes
from trainlaunch.lint.document_kinds import JOB_FILE
from trainlaunch.lint.edits import chosen
from trainlaunch.lint.file_kinds import (
    TEMPLATE,
    FileKind,
    is_markdown,
    may_hold,
    rendering_command,
    without_definitions,
)
from trainlaunch.lint.own_jobs import findings_of_job
from trainlaunch.lint.readers import UnreadableText, embedded, read_text
from trainlaunch.lint.unused_files import (
    is_filled_by_mlflow,
    is_foreign_workflow,
    is_patched,
    is_test_data,
    is_vendored,
)
from trainlaunch.repository.regular_files import open_regular
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.rules import apply_severities
from trainlaunch.rules.sources.source_text import (
    DEFECTS,
    DEVCONTAINER,
    GITHUB,
    KUBERNETES,
    TRAINING_SCRIPT,
    SourceText,
    TextFinding,
)
from trainlaunch.rules.text_findings import findings_of, in_order
from trainlaunch.rules.texts.policy_ceilings import above_ceilings
from trainlaunch.yamltree.editor import apply_edits

MAX_BYTES = 4 * 1024 * 1024
MAX_CHARACTERS = 300_000  # of a text that is judged: what is longer was written by a program
_MAX_ROUNDS = 8

VERSION = 1
_OF_PATCHES = frozenset({"TL201", "TL301", "TL310"})  # what an overlay of kustomize may well set


class Linted(NamedTuple):
    """One text and what is to be said of it; `kind` is None for a file that lint doesn't read."""

    name: str
    text: str
    kind: str | None
    findings: tuple[TextFinding, ...] = ()


def lint_text(
    text: str,
    name: str,
    kind: str | None = None,
    groups: Collection[str] = (DEFECTS,),
    policy: Policy | None = None,
) -> Linted:
    """Return the findings of one text; `name` is its path, `kind` one that the caller gives.

    `policy` is what is in force in the text's directory: its limits hold, and its severities.
    """
    if len(text) > MAX_CHARACTERS and kind is None:
        text_left = without_definitions(text)
        if len(text_left.strip()) > MAX_CHARACTERS:
            return _too_long(name, text)
    read = read_text(text, name, kind)
    if isinstance(read, SourceText):
        shown = (each for one in embedded(text, name) for each in _found(one, groups, policy))
        found = (*_found(read, groups, policy), *(map(_as_shown, shown) if is_markdown(name, kind) else ()))
        own = [each for each in found if _is_in(each, name)]
        return Linted(name, text, read.kind, in_order(allowed(read, own)))
    if isinstance(read, FileKind) and read.name == JOB_FILE:
        return Linted(name, text, JOB_FILE, in_order(findings_of_job(Path(name))))
    if isinstance(read, UnreadableText):
        most = Severity.INFO if is_foreign_workflow(name) or is_vendored(name) else Severity.ERROR
        return Linted(name, text, read.kind, (_broken(read._replace(severity=at_most(read.severity, most))),))
    if isinstance(read, FileKind) and read.name == TEMPLATE:
        return Linted(name, text, TEMPLATE, (_template(name, text),))
    return Linted(name, text, None)


def _found(file: SourceText, groups: Collection[str], policy: Policy | None) -> Iterator[TextFinding]:
    """Yield what is to be said of a file, each as severe as the policy makes it."""
    found = findings_of(with_processes(file), groups)
    found = tuple(_milder(file, found)) if found else ()
    if policy is None:
        yield from found
        return
    for each in (*found, *above_ceilings(file, policy)):
        yield from (each._replace(diagnostic=diagnostic) for diagnostic in apply_severities([each.diagnostic], policy))


def _milder(file: SourceText, found: Iterable[TextFinding]) -> Iterator[TextFinding]:
    """Yield the findings of a file no graver than they may be: what nothing runs as it is can't fail."""
    name = file.source.span(0, 0).file
    manifest = file.kind == KUBERNETES and (is_test_data(name) or is_filled_by_mlflow(name))
    unused = is_foreign_workflow(name) if file.kind == GITHUB else manifest
    most = Severity.INFO if unused or is_vendored(name) else Severity.WARNING if file.is_document else Severity.ERROR
    patched = _OF_PATCHES if file.kind == KUBERNETES and is_patched(name) else ()
    for each in found:
        own = at_most(each.severity, Severity.WARNING) if each.diagnostic.code in patched else each.severity
        yield _with_severity(each, at_most(own, most))


def _as_shown(finding: TextFinding) -> TextFinding:
    """Return what is said of a file that a document only shows, a step less grave: it is there to be read."""
    return _with_severity(finding, Severity.WARNING if finding.severity is Severity.ERROR else Severity.INFO)


def _with_severity(finding: TextFinding, severity: Severity) -> TextFinding:
    return finding._replace(diagnostic=finding.diagnostic._replace(severity=severity))


def _is_in(finding: TextFinding, name: str) -> bool:
    """Return whether a finding is about this file, and not about one that its reader lays over it."""
    span = finding.diagnostic.span
    return span is None or span.file == name


def lint_file(
    path: Path, kind: str | None = None, groups: Collection[str] = (DEFECTS,), policy: Policy | None = None
) -> Linted:
    """Return the findings of one file; one that is no text is of no kind, unless the caller gives one.

    Raises OSError where it can't be opened.
    """
    if not ITS_OWN.holds(path, path):
        raise OSError(errno.EXDEV, f"it is a link that leads out of {ITS_OWN.root(path)}", str(path))
    with open_regular(path) as file:
        return lint_bytes(file.read(MAX_BYTES + 1), str(path), kind, groups, policy)


def lint_bytes(
    data: bytes,
    name: str,
    kind: str | None = None,
    groups: Collection[str] = (DEFECTS,),
    policy: Policy | None = None,
) -> Linted:
    """Return the findings of what a file holds, or of its first MAX_BYTES and one more."""
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    if b"\0" in data[:1024] and encoding == "utf-8" and kind is None:
        return Linted(name, "", None)
    if len(data) > MAX_BYTES:
        if kind:
            return Linted(name, "", kind, (_unreadable(name, "is larger than 4 MiB", "name a smaller file"),))
        return _too_long(name, data.decode(encoding, errors="replace"))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        linted = lint_text(data.decode(encoding, errors="replace"), name, kind, groups, policy)
        if linted.kind is None:
            return linted
        line = data[: error.start].count(b"\n") + 1
        return Linted(name, "", linted.kind, (not_judged(name, "it is not UTF-8", "save it as UTF-8", line),))
    return lint_text(text, name, kind, groups, policy)


def fixed(
    linted: Linted,
    kind: str | None = None,
    groups: Collection[str] = (DEFECTS,),
    policy: Policy | None = None,
) -> Linted:
    """Return a text with all its safe fixes made, and what is to be said of that.

    Fixes are made in rounds, since two may touch one place; a round after which the text can't be read is not made.
    """
    for _ in range(_MAX_ROUNDS):
        edits = chosen(linted.findings)
        if not edits:
            break
        after = lint_text(apply_edits(linted.text, edits), linted.name, kind or linted.kind, groups, policy)
        if after.text == linted.text or any(each.diagnostic.code == "TL393" for each in after.findings):
            break
        linted = after
    return linted


def unopened(path: Path, reason: str) -> Linted:
    """Return what is to be said of a file of a folder that can't be opened."""
    return Linted(
        str(path),
        "",
        "file",
        (not_judged(str(path), f"it can't be opened: {reason}", "let this user read it, or name it in .gitignore"),),
    )


def not_judged(name: str, why: str, fix: str, line: int = 1) -> TextFinding:
    """Return what is said of a file that lint leaves out, since its reader can't take it."""
    span = Span(name, line, 1, line, 1)
    return TextFinding(
        Diagnostic("TL393", f"not judged: {why}", fix, severity=Severity.INFO, span=span), "text-unreadable"
    )


def _too_long(name: str, text: str) -> Linted:
    """Return what is said of a text that is too long to be judged, if it may be of a kind that is read."""
    if not may_hold(name, text):
        return Linted(name, "", None)
    why = f"it has more than {MAX_CHARACTERS // 1000} kB, as files of programs have"
    return Linted(name, "", "file", (not_judged(name, why, "split it, or name it in .gitignore"),))


def _broken(read: UnreadableText) -> TextFinding:
    if read.severity is Severity.INFO or read.kind == DEVCONTAINER:  # whose own reader goes on without what follows
        whose = "this Python" if read.kind == TRAINING_SCRIPT else "its reader"
        diagnostic = Diagnostic(
            "TL393",
            f"not judged: {whose} can't read the {read.kind} file: {read.message}",
            "judge it by its own reader, or name it in .gitignore",
            severity=Severity.INFO,
            span=read.span,
        )
        return TextFinding(diagnostic, "text-unreadable")
    return TextFinding(
        Diagnostic(
            "TL393",
            f"the {read.kind} file can't be read: {read.message}",
            "correct this line; the file's own reader stops here too",
            severity=read.severity,
            span=read.span,
        ),
        "text-unreadable",
    )


def _unreadable(name: str, what: str, fix: str, line: int = 1) -> TextFinding:
    return TextFinding(Diagnostic("TL393", f"{name} {what}", fix, span=Span(name, line, 1, line, 1)), "text-unreadable")


def _template(name: str, text: str) -> TextFinding:
    return TextFinding(
        Diagnostic(
            "TL394",
            "a template can't be judged before it is rendered",
            f"pipe the rendered file: {rendering_command(name, text)} | trainlaunch lint -",
            severity=Severity.INFO,
            span=Span(name, 1, 1, 1, 1),
        ),
        "template-not-lintable",
    )


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
