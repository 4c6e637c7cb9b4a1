"""What is taken out of a quoted line: values and their lines, longest first, and no word that is no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.run.secrets import Redactor
from tests.jobs import plan_with


def redactor(folder: Path, patch: pytest.MonkeyPatch, **values: str) -> Redactor:
    """Return the redactor of a job with these secrets."""
    for name, value in values.items():
        patch.setenv(name, value)
    return Redactor(plan_with(folder, secrets={name: {"env": name} for name in values}))


@pytest.mark.parametrize(
    ("values", "line", "expected"),
    [
        ({"T": "hunter22"}, "login hunter22 failed: hunter22!", "login [secret T] failed: [secret T]!"),
        ({"T": "abc"}, "abc is too short to be taken out", "abc is too short to be taken out"),
        ({"A": "abcd", "B": "abcdefgh"}, "abcdefgh abcd", "[secret B] [secret A]"),
        ({"K": "-----BEGIN KEY-----\nMIIEvQIBADAN\nend\n"}, "got MIIEvQIBADAN at the end", "got [secret K] at the end"),
        ({"T": "hunter22\n"}, "hunter22", "[secret T]"),
        ({}, "nothing to hide", "nothing to hide"),
    ],
)
def test_a_quoted_line_has_names_for_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, str], line: str, expected: str
) -> None:
    """A job prints a value of several lines line by line."""
    assert redactor(tmp_path, monkeypatch, **values)(line) == expected


def test_a_clusters_secrets_are_not_looked_for_here(tmp_path: Path) -> None:
    """They are keys of a Secret; this machine may know nothing of them."""
    limits = {"cpus": 1, "memory": "1Gi"}
    plan = plan_with(tmp_path, "kubernetes", secrets={"T": {"kubernetes": "a/b"}}, resources=limits)
    assert Redactor(plan)("a/b") == "a/b"
