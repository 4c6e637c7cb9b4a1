"""The texts in the manuals of rules do what the manuals say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.diagnostics import Severity
from trainlaunch.manuals import manuals
from trainlaunch.rules.rules_page import rules_markdown
from trainlaunch.rules.sources.source_text import DEFECTS, PRACTICE
from trainlaunch.rules.text_findings import RULES

from tests.lint.texts import linted

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r"^\*\*(?P<part>Example|Write instead)\*\*:\n\n```(?P<kind>[a-z-]+)\n(?P<body>.*?)^```$", re.M | re.S
)
PARTS = [
    pytest.param(each.code, match["part"], match["kind"], match["body"], id=f"{each.code}-{match['part'].split()[0]}")
    for each in manuals().values()
    if each.code.startswith("TL3")
    for match in FENCE.finditer(each.explained)
    if match["kind"] not in {"text", "sh"}
]


@pytest.mark.parametrize(("code", "part", "fence", "body"), PARTS)
def test_the_texts_of_a_manual_get_the_code_or_nothing(code: str, part: str, fence: str, body: str) -> None:
    """The example gets its code; what to write instead gets neither that nor an error."""
    found = linted(body, fence).findings
    if part == "Example":
        assert code in {each.diagnostic.code for each in found}
    else:
        assert [each for each in found if each.severity is Severity.ERROR or each.diagnostic.code == code] == []


def test_a_rule_of_texts_says_its_group() -> None:
    """`--select` chooses by it."""
    assert [rule.name for rule in RULES if rule.group not in {DEFECTS, PRACTICE}] == []


def test_the_page_of_rules_is_current(golden: Callable[[Path, str], None]) -> None:
    """docs/rules.md is what `python -m trainlaunch.rules.rules_page` writes."""
    golden(ROOT / "docs" / "rules.md", rules_markdown())
