"""The job files that README.md and docs/ show are ones that trainlaunch takes, on every target that has a rendering."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.targets import text_targets
from trainlaunch.verify import verified

from tests.conftest import ROOT

BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Page and block; all but those of other kinds of file, and of alternatives that one file can't hold.
SHOWN = (
    ("README.md", 0),
    ("docs/kubernetes.md", 0),
    ("docs/secrets.md", 0),
    ("docs/patches.md", 0),
    ("docs/gpus.md", 1),
)


def block(page: str, number: int) -> str:
    """Return a YAML block of a page."""
    return str(BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))[number])


@pytest.mark.parametrize("target", text_targets())
@pytest.mark.parametrize(("page", "number"), SHOWN, ids=[page for page, _ in SHOWN])
def test_a_shown_job_file_renders(page: str, number: int, target: str, tmp_path: Path) -> None:
    """A whole job file as it stands, and fields alone under the README's job."""
    shown = block(page, number)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").touch()
    job = tmp_path / "job.yaml"
    job.write_text(shown if re.search("^name:", shown, re.MULTILINE) else block("README.md", 0) + shown)
    plan = plan_job(read_job(job, target=target))
    assert verified(plan, render(plan))
