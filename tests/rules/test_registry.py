"""Each rule is registered, named after its file, and has a whole manual; tests/cli/test_explain runs its examples."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from launcher import rules
from launcher.diagnostics import Severity
from launcher.errors import JobFileRejected
from launcher.plan import make_plan
from launcher.rules import all_rules, judged, plan_job, shm_size_below_need
from tests.conftest import ROOT
from tests.jobs import job_with

FOLDER = ROOT / "launcher" / "rules"
OTHERS = {"__init__", "weights", "job_demands"}
SECTIONS = ["Why it matters", "Example", "Use instead", "Fix", "References"]


def test_every_module_of_the_folder_is_a_rule() -> None:
    """One that nobody calls would say nothing; none is called twice."""
    names = [each.__name__.rpartition(".")[2] for each in all_rules()]
    assert sorted(names) == sorted(
        path.stem for path in FOLDER.glob("*.py") if path.stem not in {"__init__", "weights", "job_demands"}
    )


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.NAME)
def test_a_rule_is_named_after_its_file_and_has_a_manual(rule: ModuleType) -> None:
    """What it does, then the fixed sections in their order."""
    assert rule.__name__ == f"{rules.__name__}.{rule.NAME.replace('-', '_')}"
    assert re.fullmatch(r"TL\d{3}", rule.CODE)
    assert isinstance(rule.SEVERITY, Severity)
    assert re.findall(r"^\*\*([^*]+)\*\*:", rule.__doc__ or "", re.MULTILINE) == SECTIONS
    assert re.match(r"[^\n]+\.\n\n\*\*", rule.__doc__ or "")


def test_no_code_belongs_to_two_rules() -> None:
    """A code is one thing to look up."""
    codes = [each.CODE for each in all_rules()]
    assert len(set(codes)) == len(codes)


def test_what_is_said_follows_from_the_plan_alone(tmp_path: Path) -> None:
    """A plan is made whatever is wrong with it; each rule looks at it alone, and the judge stops those who want one."""
    job = job_with(
        tmp_path, shm_size="64Mi", data_loader={"num_workers": 4, "batch_bytes": {"size": "1Gi", "tensors": 1}}
    )
    plan = make_plan(job)
    assert [each.code for each in shm_size_below_need.check(plan)] == ["TL202"]
    with pytest.raises(JobFileRejected):
        judged(plan)
    with pytest.raises(JobFileRejected):
        plan_job(job)
    forced = judged(make_plan(job, force=True))
    assert [each.severity for each in forced if each.code == "TL202"] == [Severity.WARNING]
