"""The texts in the manuals of rules do what the manuals say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from launcher.cli.codes import explanations
from launcher.diagnostics import Severity
from launcher.rules.written.model import DEFECTS, PRACTICE
from launcher.rules.written.reference import rules_markdown
from launcher.rules.written.registry import RULES
from tests.lint.texts import linted

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r"^\*\*(?P<part>Example|Write instead)\*\*:\n\n```(?P<kind>[a-z-]+)\n(?P<body>.*?)^```$", re.M | re.S
)
PARTS = [
    pytest.param(each.code, match["part"], match["kind"], match["body"], id=f"{each.code}-{match['part'].split()[0]}")
    for each in explanations().values()
    if each.code.startswith("TL3")
    for match in FENCE.finditer(each.sections)
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


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.NAME)
def test_a_rule_of_texts_says_its_group(rule: object) -> None:
    """`--select` chooses by it."""
    assert vars(rule)["GROUP"] in {DEFECTS, PRACTICE}
    assert callable(vars(rule)["check_written"])


def test_the_page_of_rules_is_current(golden: Callable[[Path, str], None]) -> None:
    """docs/rules.md is what `python -m launcher.rules.written.reference` writes."""
    golden(ROOT / "docs" / "rules.md", rules_markdown())


def test_each_rule_has_one_module_named_after_it_and_a_code_of_its_own() -> None:
    """A newcomer finds a rule's file by the name in its finding."""
    names = [rule.NAME for rule in RULES]
    assert [rule.__name__.rpartition(".")[2] for rule in RULES] == [name.replace("-", "_") for name in names]
    assert len({rule.CODE for rule in RULES}) == len(RULES) == len(set(names))
