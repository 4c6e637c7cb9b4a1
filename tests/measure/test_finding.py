"""What probe can find has a code and a manual, and its words survive whatever a container reports."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.diagnose import SYMPTOMS
from trainlaunch.diagnostics import Severity
from trainlaunch.manuals import manuals
from trainlaunch.measure.finding import ProbeFinding
from trainlaunch.measure.findings import DEFECTS, diagnosed

CASES = Path(__file__).parent / "findings"
FENCE = re.compile(r"^```([a-z]+)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_has_one_code_of_its_name(defect: str) -> None:
    """`explain` finds it by the name in JSON; where a symptom of a dead run has that name, one that begins with it."""
    manual = manuals()[DEFECTS[defect].code]
    assert re.fullmatch(r"TL7\d\d", manual.code)
    if defect in {each.name for each in SYMPTOMS}:
        assert manual.name.startswith(f"{defect}-")
    else:
        assert manual.name == defect


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_manual_is_on_the_page_of_its_family(defect: str) -> None:
    """Who has found the words finds the manual."""
    assert manuals()[DEFECTS[defect].code].page == DEFECTS[defect].words.__module__.rpartition(".")[2]


def test_no_two_defects_share_a_code() -> None:
    """A code leads to one manual."""
    codes = [each.code for each in DEFECTS.values()]
    assert sorted(set(codes)) == sorted(codes)


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_scripts_of_a_manual_are_python(defect: str) -> None:
    """An example that does not parse helps nobody."""
    fences = FENCE.findall(manuals()[DEFECTS[defect].code].sections)
    assert len(fences) >= 2
    for kind, body in fences:
        assert kind in {"python", "yaml"}
        if kind == "python":
            ast.parse(body)


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_words_of_a_defect_are_tested(defect: str) -> None:
    """tests/measure/findings says the facts that its check reports, and what is made of them."""
    assert any(f'"{defect}"' in path.read_text() for path in CASES.glob("test_*.py"))


@pytest.mark.parametrize("defect", DEFECTS)
@pytest.mark.parametrize("facts", [{}, {"seen": [], "stated": "x"}, dict.fromkeys("abc")], ids=["none", "odd", "other"])
def test_facts_that_do_not_fit_leave_the_code_and_its_title(defect: str, facts: dict[str, Any]) -> None:
    """A container of another release, or a hostile one, hides no finding and breaks no verb."""
    said = diagnosed(ProbeFinding(defect, None, "", facts))
    assert said is not None
    assert said.code == DEFECTS[defect].code
    assert said.message
    assert said.fix
    assert said.severity is not Severity.INFO


@pytest.mark.parametrize("name", ["", "os", "../finding", "trainlaunch.api", "Loaders-Differ", "loaders_differ"])
def test_a_name_that_is_no_defect_has_no_words(name: str) -> None:
    """A name from a container is looked up, and imports nothing."""
    assert diagnosed(ProbeFinding(name, 0, "train.py:1", {})) is None
