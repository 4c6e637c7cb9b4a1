"""What follows from a plan is worked out once for it, and never for another."""

from __future__ import annotations

from pathlib import Path

from trainlaunch.container.container import container_of
from trainlaunch.container.name_hash import template_hash
from trainlaunch.plan.launch_plan import LaunchPlan, cache_last_plan

from tests.jobs import plan_with


def test_a_plan_is_asked_once_in_turn(tmp_path: Path) -> None:
    """One of the same values is another plan, and so is the one before once another was asked about."""
    plan = plan_with(tmp_path)
    asked: list[LaunchPlan] = []
    name_of = cache_last_plan(lambda each: asked.append(each) or each.name)
    same = plan._replace(measures=plan.measures)
    assert [name_of(each) for each in (plan, plan, same, same, plan)] == [plan.name] * 5
    assert list(map(id, asked)) == [id(plan), id(same), id(plan)]


def test_each_plan_gets_its_own_texts_and_hash(tmp_path: Path) -> None:
    """Asked about in turn, two plans keep what is theirs."""
    one = plan_with(tmp_path, "kubernetes", resources={"cpus": 4, "memory": "8Gi"})
    two = one._replace(argv=("python", "other.py"), open_files=one.open_files + 1)
    first, second = ((template_hash(each), container_of(each)) for each in (one, two))
    assert first[0] != second[0]
    assert first[1].args == one.argv != second[1].args
    assert first[1].env != second[1].env
    assert (template_hash(one), container_of(one)) == first
