"""Each file of tests/job/invalid is refused with exactly the diagnostics that stand beside it.

A file's own comments choose the call: `# target: kubernetes`, `# set: field=value`. The expected text is updated with
`--update-goldens` and reviewed in the diff.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.errors import JobFileRejected
from trainlaunch.policy import read_job

INVALID = Path(__file__).parent / "invalid"
FILES = sorted(INVALID.glob("*.yaml"))
_ONE_VALUE = re.compile(r"write (\S+)")
_EDITABLE = {"TL105", "TL107", "TL108"}


@cache
def rejection(path: Path) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a file that must be refused."""
    text = path.read_bytes().decode(errors="replace")
    target = re.search(r"^# target: (.*)$", text, re.MULTILINE)
    sets = re.findall(r"^# set: (.*)$", text, re.MULTILINE)
    with pytest.raises(JobFileRejected) as caught:
        read_job(path, target=target[1] if target else None, sets=sets)
    return caught.value.diagnostics


def concise(diagnostic: Diagnostic, path: Path) -> str:
    """Return one line of the expected text; a --set is named, the file itself isn't."""
    span = diagnostic.span
    place = ""
    if span is not None:
        label = "" if span.file == str(path) else f"{span.file}:"
        place = f"{label}{span.line}:{span.column}: "
    message = diagnostic.message.replace(str(path), path.name)
    return f"{place}{diagnostic.severity.value} {diagnostic.code}: {message}\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_invalid_job_gets_its_diagnostics(path: Path, golden: Callable[[Path, str], None]) -> None:
    """All errors of a file come at once, in the order of the file, with code and place."""
    golden(path.with_suffix(".txt"), "".join(concise(each, path) for each in rejection(path)))


def is_well_said(text: str) -> bool:
    """Return whether a text follows the house style: one line, no full stop at the end, no word of Python."""
    ended = text.endswith(".") and not text.endswith("…")
    return not (ended or re.search(r"\n|\b(please|invalid|oops|failed to|NoneType)\b", text, re.IGNORECASE))


def test_a_diagnostic_is_one_sentence_with_a_fix() -> None:
    """An error, with its code, a message and an imperative fix."""
    wrong = [
        (path.stem, each.code, each.message)
        for path in FILES
        for each in rejection(path)
        if each.severity is not Severity.ERROR
        or not (re.fullmatch(r"TL[1-4]\d\d", each.code) and each.message and each.fix)
        or not all(map(is_well_said, (each.message, each.fix, each.why)))
    ]
    assert wrong == []


def test_typing_the_value_of_a_fix_clears_its_error(tmp_path: Path) -> None:
    """Where a fix is one value to write, that value in the error's place is accepted there."""
    assert [left for path in FILES for left in left_by_fixes(path, tmp_path)] == []


def left_by_fixes(path: Path, folder: Path) -> Iterator[str]:
    """Yield the errors of a file that stay where the value of their fix is written."""
    text = path.read_bytes().decode(errors="replace")
    lines = re.split(r"(?<=\n)", text)
    for each in rejection(path):
        span, value = each.span, _ONE_VALUE.fullmatch(each.fix)
        if value is None or span is None or span.file != str(path) or each.code not in _EDITABLE:
            continue
        if span.line != span.end_line:
            continue
        line = lines[span.line - 1]
        fixed = [*lines]
        padding = "" if line[: span.column - 1].endswith((" ", "[")) else " "
        fixed[span.line - 1] = line[: span.column - 1] + padding + value[1] + line[span.end_column - 1 :]
        edited = folder / path.name
        edited.write_text("".join(fixed), encoding="utf-8")
        place = (span.line, span.column + len(padding))
        if place in places_left(edited, each.code):
            yield f"{path.stem}: {each.message}; fix: {each.fix}"


def places_left(path: Path, code: str) -> set[tuple[int, int]]:
    """Return where `code` still stands in a job file."""
    text = path.read_text(encoding="utf-8")
    target = re.search(r"^# target: (.*)$", text, re.MULTILINE)
    try:
        read_job(path, target=target[1] if target else None)
    except JobFileRejected as rejected:
        found = rejected.diagnostics
    else:
        found = ()
    return {(each.span.line, each.span.column) for each in found if each.span and each.code == code}


def test_no_expected_text_is_left_over() -> None:
    """Every expected text belongs to a job file."""
    assert {each.stem for each in INVALID.glob("*.txt")} == {each.stem for each in FILES}
