"""A wheel renders what its checkout renders, without Jinja2."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.templating import precompiled as built
from trainlaunch.templating.environment import TEMPLATES, environment

from hatch_build import python_of
from tests.conftest import ROOT
from tests.installed.compare import differences
from tests.runners import run_process

LISTED = """\
import importlib.metadata, json, trainlaunch
from pathlib import Path
found = Path(trainlaunch.__file__).parent
"""


def asked(python: Path, program: str) -> str:
    """Return what a program prints, with the installed package alone."""
    done = subprocess.run([str(python), "-I", "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)])
def test_a_wheel_renders_what_its_checkout_renders(installed: Path, step: int) -> None:
    """Every example and every job of the goldens on a third of, then on all targets and kinds, messages included."""
    assert differences(str(installed), step) == []


def test_a_wheel_has_modules_and_no_templates(installed: Path) -> None:
    """One for each template; scripts that are the same for every job are there as they are."""
    names = asked(
        installed, LISTED + "print(*(each.suffix for each in (found / 'templates').iterdir() if each.is_file()))"
    )
    expected = [".py"] * len(list(TEMPLATES.rglob("*.j2"))) + [".sh"] * len(list(TEMPLATES.glob("*.sh")))
    assert sorted(names.split()) == expected


def test_a_wheel_does_not_depend_on_jinja2(installed: Path) -> None:
    """What the modules need of it is the package's own."""
    needs = asked(installed, LISTED + "print(*importlib.metadata.requires('trainlaunch'))").lower()
    assert "pyyaml" in needs
    assert "jinja2" not in needs


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("{{ x }}", TypeError),
        ("{{ x | sh ~ 'a' }}", TypeError),
        ("{{ y | sh }}", NameError),
        ("{% if y %}{% endif %}", NameError),
        ("{{ (x if not x) | sh }}", NameError),
        ("{{ x.y | sh }}", AttributeError),
        ("{{ x | sh }}", None),
    ],
)
def test_a_built_template_raises_where_a_template_would(source: str, error: type[Exception] | None) -> None:
    """A value that no quoting filter made, and a name without a value, stop the rendering."""
    python = python_of(environment(), "tried", source)
    made: dict[str, Any] = {}
    exec(python, made)  # noqa: S102  as an import would
    texts = made["root"](built.Context(x="a b"))
    with pytest.raises(error) if error else contextlib.nullcontext():
        assert "".join(texts) == "'a b'"


STARTED = "import sys\nsys.modules.update({hidden})\nfrom trainlaunch.cli.main import main\nsys.exit(main())\n"


@pytest.mark.parametrize(
    ("removed", "hidden", "fix"),
    [
        ("jinja2", {"jinja2": None}, f"pip install --editable {shlex.quote(str(ROOT))}`"),
        ("templates", {}, "install trainlaunch again"),
    ],
)
def test_a_checkout_that_can_not_render_says_what_is_missing(
    removed: str, hidden: dict[str, None], fix: str, tmp_path: Path
) -> None:
    """`pip install .` brings no Jinja2, and a checkout's own package hides what it installed: no bug to report."""
    job = {"name": "a-job", "image": "trainer:1", "command": ["python", "train.py"]}
    (tmp_path / "job.yaml").write_text(json.dumps({**job, "resources": {"cpus": 2, "memory": "4Gi"}}))
    checkout = ROOT
    if removed == "templates":
        checkout = tmp_path / "checkout"
        shutil.copytree(ROOT / "launcher", checkout / "launcher", ignore=shutil.ignore_patterns("__pycache__"))
    start = [sys.executable, "-c", STARTED.format(hidden=hidden), "render", "job.yaml", "--target"]
    for target in ("docker", "kubernetes"):
        environment = {**os.environ, "PYTHONPATH": str(checkout / "launcher")}
        done = run_process([*start, target], cwd=tmp_path, env=environment)
        assert (done.returncode, done.stdout, done.stderr.count("error[")) == (2, "", 1), done.stderr
        assert "error[TL158]" in done.stderr
        assert fix in done.stderr
