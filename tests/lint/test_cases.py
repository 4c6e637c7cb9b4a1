"""Every field report about written texts gets the findings and the fixed text that were judged right."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench import lint_cases
from tests import plain_yaml
from tests.render.readers import compose, kubectl_json

EXPECTED: dict[str, Any] = json.loads(lint_cases.EXPECTED.read_text(encoding="utf-8"))
ROWS = list(lint_cases.rows())
FIXED = [(row, EXPECTED[row["id"]]["fixed"]) for row in ROWS if "fixed" in EXPECTED[row["id"]]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_report_gets_what_was_judged_right(row: dict[str, Any]) -> None:
    """Severity, rule, line, fixed text; the report's own severity is among them."""
    assert lint_cases.compare(row, EXPECTED[row["id"]]).differences == []


def test_no_expectation_is_of_a_report_that_is_gone() -> None:
    """One a report, in both directions."""
    assert set(EXPECTED) == {row["id"] for row in ROWS}


def test_a_difference_is_told_and_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that goes silent is a miss, one that speaks without cause a false alarm."""
    lines = EXPECTED["k8-no-shm"]["findings"]
    changed = {**EXPECTED, "k8-no-shm": {"findings": [[*lines[0][:2], 1]]}}
    monkeypatch.setattr(lint_cases, "EXPECTED", _File(json.dumps(changed)))
    assert lint_cases.main([]) == 1
    printed = capsys.readouterr().out
    assert "k8-no-shm: findings: expected" in printed
    assert "1 misses, 1 false alarms" in printed


class _File:
    def __init__(self, text: str) -> None:
        self._text = text

    def read_text(self, encoding: str) -> str:
        assert encoding == "utf-8"
        return self._text


@pytest.mark.parametrize(("row", "text"), FIXED, ids=[row["id"] for row, _ in FIXED])
def test_a_fixed_text_is_read_by_its_own_reader(row: dict[str, Any], text: str, tmp_path: Path) -> None:
    """Compose, kubectl, a shell, JSON; a workflow by YAML's own reader."""
    kind = row["kind"]
    if kind == "compose":
        (tmp_path / "Dockerfile").write_text("FROM scratch\n")
        assert compose("config", "--quiet", text=text, cwd=tmp_path).returncode == 0
    elif kind == "k8s":
        assert kubectl_json(text)
    elif kind == "devcontainer":
        assert json.loads(text)["runArgs"]
    elif row["input_format"] == "shell":
        subprocess.run(["sh", "-n"], input=text, text=True, check=True)
    else:
        assert plain_yaml.load(text)
