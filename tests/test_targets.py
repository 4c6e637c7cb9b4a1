"""A target is one record and a module of its name in each room; nothing else knows its name."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.validation.context import ValidationContext, cannot
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render
from trainlaunch.render.header import header_lines
from trainlaunch.targets import TARGETS, Target, text_targets

from tests.conftest import ROOT
from tests.jobs import plan_with, write_job

MOST_FILES_THAT_COMPARE_NAMES = 6
NAMED = re.compile(rf"[\"']({'|'.join(TARGETS)})[\"']")
FAKE = Target("fake", file_name="{name}.fake", multi_node_unsupported="a fake has one node")
# A process of its own: the table of fields is made from the records when it is first imported.
WITH_FAKE = """
import sys, types
from trainlaunch.targets import TARGETS, Target
TARGETS["fake"] = Target("fake", has_text=False)
checks = types.ModuleType("trainlaunch.job.validation.fake")
checks.check = lambda job: None
sys.modules[checks.__name__] = checks
from trainlaunch.cli.main import main
raise SystemExit(main(sys.argv[1:]))
"""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a target: its record, and its modules of two rooms."""
    checks, renderer = ModuleType("trainlaunch.job.validation.fake"), ModuleType("trainlaunch.render.fake")

    def check(job: ValidationContext) -> None:
        if job.value("annotations"):
            cannot(job, "annotations", "annotations", fix="write them as labels")

    def text(plan: LaunchPlan, *, base: Path | None) -> str:
        comment = "".join(f"# {line}\n" for line in header_lines(plan, base=base))
        return f"{comment}run {plan.job.image} with {plan.shm.size.value} bytes\n"

    vars(checks)["check"], vars(renderer)["text"] = check, text
    monkeypatch.setitem(TARGETS, FAKE.name, FAKE)
    for module in (checks, renderer):
        monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("fake")
def test_a_new_target_plans_and_renders(tmp_path: Path) -> None:
    """Its own module writes the text, under the header of all."""
    plan = plan_with(tmp_path, "fake", shm_size="2Gi", restart={"max_attempts": 2})
    first, *_, attempts, last = render(plan).splitlines()
    assert first == "# Rendered by trainlaunch from job.yaml for fake: change that file and render again."
    assert attempts.startswith("# restart.max_attempts 2: only `trainlaunch up` starts another attempt")
    assert last == f"run trainer:1 with {2 << 30} bytes"
    assert text_targets() == ("docker", "compose", "kubernetes", "fake")


@pytest.mark.usefixtures("fake")
def test_a_new_target_has_checks_of_its_own(tmp_path: Path) -> None:
    """What its module reports is an error like any other."""
    with pytest.raises(JobFileRejected) as rejected:
        plan_with(tmp_path, "fake", annotations={"a": "b"})
    assert [each.message for each in rejected.value.diagnostics] == ["fake has no annotations"]


def test_a_new_target_is_known_to_the_job_file_and_the_command_line(tmp_path: Path) -> None:
    """As `target`, under target_overrides, and as an option."""
    job = write_job(tmp_path, target="fake", target_overrides={"fake": {"shm_size": "3Gi"}})
    for options in ([], ["--target", "fake"]):
        done = subprocess.run(
            [sys.executable, "-c", WITH_FAKE, "plan", str(job), *options],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "launcher")},
            timeout=60,
        )
        assert (done.returncode, "target fake" in done.stdout, "3Gi" in done.stdout) == (0, True, True), done.stderr


def test_modules_that_compare_a_targets_name_are_few() -> None:
    """What is so of a target is asked of its record."""
    compare = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "launcher" / "trainlaunch").rglob("*.py")
        if NAMED.search(text := path.read_text()) and _compares_names(text)
    }
    assert len(compare) <= MOST_FILES_THAT_COMPARE_NAMES, compare


def _compares_names(source: str) -> bool:
    """Return whether anything is compared with the name of a target, alone or among others."""
    compared = (each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.Compare))
    sides = (side for each in compared for side in (each.left, *each.comparators))
    words = (word for side in sides for word in (side.elts if isinstance(side, (ast.Set, ast.Tuple)) else [side]))
    return any(isinstance(each, ast.Constant) and each.value in TARGETS for each in words)
