"""Each rule is asked, and has a whole manual on the page of its family; tests/cli/test_explain runs its examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.manuals import manuals
from trainlaunch.plan import make_plan
from trainlaunch.rules import check_plan, plan_job, plan_rules
from trainlaunch.rules.base.rule import PlanRule
from trainlaunch.rules.base.text_rule import TextRule
from trainlaunch.rules.plan.sizes import shm_size_below_need
from trainlaunch.rules.text_findings import RULES

from tests.conftest import ROOT
from tests.jobs import job_with

RULE = re.compile(r'^ *@(?:plan|text|container|pod)_rule\("(TL\d{3})", .*\n *def (\w+)', re.MULTILINE)
# Code and name of each rule by its family: the stem of the module, and of the page that has its manual.
WRITTEN = [
    (match[1], match[2].replace("_", "-"), path.stem)
    for folder in ("plan", "texts")
    for path in sorted((ROOT / "launcher" / "trainlaunch" / "rules" / folder).glob("*.py"))
    for match in RULE.finditer(path.read_text(encoding="utf-8"))
]
SECTIONS = ["Why", "Example", "Write instead", "Fix", "References"]


def test_every_function_of_a_family_that_is_a_rule_is_asked() -> None:
    """One that nobody calls would say nothing; none is called twice. The ceilings of texts are asked under a policy."""
    asked = [(rule.code, rule.name) for rule in (*plan_rules(), *RULES)]
    assert sorted([*asked, ("TL140", "above-policy-ceiling")]) == sorted((code, name) for code, name, _ in WRITTEN)


def test_a_rule_has_a_manual_on_the_page_of_its_family() -> None:
    """What it does, then the fixed sections in their order; a defect of plans and texts has one manual."""
    rules: list[PlanRule | TextRule] = [*plan_rules(), *RULES]
    wrong = [
        rule.name
        for rule in rules
        for manual in [manuals()[rule.code]]
        if (manual.name, manual.title[-1:]) != (rule.name, ".")
        or (rule.code, rule.name, manual.page) not in WRITTEN
        or re.findall(r"^\*\*([^*]+)\*\*:", manual.sections, re.MULTILINE) != SECTIONS
    ]
    assert wrong == []


def test_no_code_belongs_to_two_rules() -> None:
    """A code is one thing to look up, of a plan and of a text too."""
    assert len({code for code, _, _ in WRITTEN}) == len({(code, name) for code, name, _ in WRITTEN})
    for rules in (plan_rules(), RULES):
        codes = [rule.code for rule in rules]
        assert len(set(codes)) == len(codes)


def test_what_is_said_follows_from_the_plan_alone(tmp_path: Path) -> None:
    """A plan is made whatever is wrong with it; each rule looks at it alone, and the judge stops those who want one."""
    job = job_with(
        tmp_path, shm_size="64Mi", data_loader={"num_workers": 4, "batch_bytes": {"size": "1Gi", "tensors": 1}}
    )
    plan = make_plan(job)
    assert [each.code for each in shm_size_below_need.check(plan)] == ["TL202"]
    with pytest.raises(JobFileRejected):
        check_plan(plan)
    with pytest.raises(JobFileRejected):
        plan_job(job)
