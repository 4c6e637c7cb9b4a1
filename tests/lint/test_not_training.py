"""Texts that are no training: servers, agents, operators, jobs of other fields, CI. Lint says nothing grave of them."""

from __future__ import annotations

import re
from pathlib import Path

from trainlaunch.diagnostics import Severity
from trainlaunch.lint.linter import fixed, lint_text

TEXTS = re.findall(
    r"^=== (\S+)\n(.*?)(?=^=== |\Z)", Path(__file__).with_name("not_training.txt").read_text(), re.M | re.S
)


def test_there_are_enough_of_them() -> None:
    """Written anew after public ones."""
    assert len({text for _, text in TEXTS}) >= 150


def test_what_is_not_training_has_no_error_and_no_warning_and_is_not_changed() -> None:
    """A word that training shares with others is one sign, and a fix would size what needs no size."""
    grave: list[str] = []
    for name, text in TEXTS:
        linted = lint_text(text, name)
        grave += [
            f"{name}: {each.diagnostic.code} {each.diagnostic.message}"
            for each in linted.findings
            if each.severity is not Severity.INFO
        ]
        grave += [f"{name} is changed"] if fixed(linted).text != text else []
    assert grave == []
