"""Job files for tests: a minimal one, with what a test is about on top."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainlaunch.job.spec import JobSpec
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy import read_job
from trainlaunch.rules import check_plan, plan_job

from tests import plain_yaml

MINIMAL: dict[str, Any] = {"name": "digits", "image": "trainer:1", "command": ["python", "train.py"]}


def write_job(folder: Path, **fields: Any) -> Path:
    """Write MINIMAL with `fields` over it as folder/job.yaml and return the path; a field of None leaves it out."""
    folder.mkdir(parents=True, exist_ok=True)
    merged = {key: value for key, value in {**MINIMAL, **fields}.items() if value is not None}
    path = folder / "job.yaml"
    path.write_text(plain_yaml.dump(merged, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def job_with(folder: Path, target: str = "docker", **fields: Any) -> JobSpec:
    """Return the JobSpec of such a file."""
    return read_job(write_job(folder, **fields), target=target)


def plan_with(folder: Path, target: str = "docker", **fields: Any) -> LaunchPlan:
    """Return the plan of such a file."""
    return plan_job(job_with(folder, target, **fields))


def plan_under(folder: Path, policy: dict[str, Any], *sets: str, target: str = "docker", **fields: Any) -> LaunchPlan:
    """Return the plan of such a file under a policy."""
    (folder / "trainlaunch-policy.yaml").write_text(plain_yaml.dump(policy, sort_keys=False))
    return plan_job(read_job(write_job(folder, **fields), target=target, sets=sets))


def codes_of(plan: LaunchPlan) -> list[str]:
    """Return the codes of what is said of a plan."""
    return [each.code for each in check_plan(plan)]
