"""Files made after public ones of all kinds, and this repository's own: every finding in them was judged by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from trainlaunch.lint.files import files_of
from trainlaunch.lint.linter import Linted, fixed, lint_file
from trainlaunch.rules.text_findings import RULES

from tests.lint.texts import BOTH

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = Path("tests/lint/public")
OWN = (Path("compose"), Path("examples"), Path("k8s"))
EXPECTED = Path(__file__).with_name("public.txt")


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in a copy of the files, by the same names: in a repository that has its own workflows theirs never run."""
    for folder in (*OWN, PUBLIC):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)


@cache
def linted(*folders: Path) -> tuple[Linted, ...]:
    """Return each file of folders that lint reads, as they are called from the root of the checkout."""
    found = (lint_file(path, None, BOTH) for path in files_of(folders))
    return tuple(each for each in found if each.kind is not None)


def test_only_judged_findings_are_printed(golden: Callable[[Path, str], None]) -> None:
    """public.txt has a line for each finding, and files without any are right; read its diff as a reviewer."""
    group = {rule.name: rule.group for rule in RULES}
    lines: list[str] = []
    for each in (*linted(*OWN), *linted(PUBLIC)):
        for finding in each.findings:
            span = finding.diagnostic.span
            assert span is not None
            practice = " (practice)" if group.get(finding.name) == "practice" else ""
            lines.append(f"{each.name}:{span.line}:{span.column}: {finding.severity.value} {finding.name}{practice}\n")
    golden(EXPECTED, "".join(lines))


def test_there_are_enough_files_of_every_kind() -> None:
    """Sixty at least, a third of them without a defect."""
    found = linted(PUBLIC)
    assert len(found) >= 60
    assert len({each.kind for each in found}) >= 9
    practice = {rule.name for rule in RULES if rule.group == "practice"}
    right = [each for each in found if {finding.name for finding in each.findings} <= practice]
    assert len(right) >= len(found) // 3


def test_fixed_files_keep_their_other_findings_and_have_no_safe_fix_left() -> None:
    """A fix that brings a new finding would only move the mistake; the limit that a size needs can't be guessed."""
    for each in linted(PUBLIC):
        after = fixed(each, None, BOTH)
        if each.name.endswith(".json") and "devcontainer" not in each.name:
            json.loads(after.text)
        assert not any(finding.safe for finding in after.findings), each.name
        before = {finding.name for finding in each.findings} | {"shm-without-memory-limit"}
        assert {finding.name for finding in after.findings} <= before, each.name
