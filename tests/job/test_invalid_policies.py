"""Each file of tests/job/invalid_policies is refused with exactly the diagnostics that stand beside it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import JobFileRejected
from trainlaunch.policy import read_job

from tests.jobs import write_job

FOLDER = Path(__file__).parent / "invalid_policies"
FILES = sorted(FOLDER.glob("*.yaml"))


def rejection(path: Path, folder: Path) -> tuple[Diagnostic, ...]:
    """Return what is said of a policy that must be refused."""
    with pytest.raises(JobFileRejected) as caught:
        read_job(write_job(folder), policy=path)
    return caught.value.diagnostics


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_invalid_policy_gets_its_diagnostics(
    path: Path, tmp_path: Path, golden: Callable[[Path, str], None]
) -> None:
    """All errors come at once, in the order of the policy, each with its place in it."""
    lines = []
    for each in rejection(path, tmp_path):
        assert each.span is not None
        assert each.span.file == str(path)
        lines.append(f"{each.span.line}:{each.span.column}: error {each.code}: {each.message}; {each.fix}\n")
    golden(path.with_suffix(".txt"), "".join(lines))


def test_a_diagnostic_of_a_policy_is_one_sentence_with_a_fix(tmp_path: Path) -> None:
    """Messages follow the house style."""
    wrong = [
        (path.stem, each.code, text)
        for path in FILES
        for each in rejection(path, tmp_path)
        for text in (each.message, each.fix)
        if not re.fullmatch(r"TL1\d\d", each.code) or not re.fullmatch(r".*[^.]", text)
    ]
    assert wrong == []


def test_no_expected_text_of_a_policy_is_left_over() -> None:
    """Every expected text belongs to a policy."""
    assert {each.stem for each in FOLDER.glob("*.txt")} == {each.stem for each in FILES}
