"""What a start of the installed package loads: each module here would cost more than what it is started for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
JOB = ROOT / "examples" / "quickstart" / "job.yaml"
# Measured on one CPU, in starts of bare Python: Jinja2 4, dataclasses with inspect 1 and 0.05 for each class, tempfile,
# shutil, json, traceback, difflib and fractions a quarter to a half each.
COSTLY = {"dataclasses", "difflib", "fractions", "inspect", "jinja2", "json", "shutil", "tempfile", "traceback"}
OF_OTHER_TARGETS = {
    "docker": {"trainlaunch.render.compose", "trainlaunch.render.kubernetes", "trainlaunch.verify.kubernetes"},
    "compose": {"trainlaunch.render.docker", "trainlaunch.formats.docker.read", "csv"},
    "kubernetes": {"trainlaunch.render.docker", "trainlaunch.render.compose", "trainlaunch.formats.docker.read", "csv"},
}


def loaded_by(python: Path, *argv: str) -> set[str]:
    """Return the modules that a process of the installed package has when `trainlaunch ARGV` is done."""
    program = (
        "import sys\nfrom trainlaunch.cli.main import main\ntry:\n    raise SystemExit(main(sys.argv[1:]))\n"
        "finally:\n    print('\\n' + '\\n'.join(sys.modules), file=sys.stderr)"
    )
    # Isolated, so that only this program's own imports count; coverage tools and site hooks load modules of theirs.
    run = [str(python), "-I", "-c", program, *argv]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
    return set(done.stderr.splitlines())


@pytest.mark.parametrize("target", OF_OTHER_TARGETS)
def test_render_loads_what_its_target_needs(target: str, installed: Path) -> None:
    """Neither costly modules nor other targets' renderers and readers."""
    loaded = loaded_by(installed, "render", str(JOB), "--target", target)
    assert "trainlaunch.verify.expected_workload" in loaded
    assert loaded & (COSTLY | OF_OTHER_TARGETS[target]) == set()


def test_rendering_all_targets_loads_nothing_costly(installed: Path) -> None:
    """Three targets share one start."""
    assert loaded_by(installed, "render", str(JOB), "--target", "all") & COSTLY == set()


def test_plan_loads_nothing_costly_and_no_renderer(installed: Path) -> None:
    """No text of a target is needed; who decides the workers is read from the script."""
    loaded = loaded_by(installed, "plan", str(JOB))
    assert loaded & COSTLY == set()
    assert not any(each.startswith(("trainlaunch.render", "trainlaunch.verify", "launcher.templat")) for each in loaded)


def test_help_of_run_loads_nothing_that_runs(installed: Path) -> None:
    """Its arguments are known without what plans, starts and follows a command."""
    loaded = loaded_by(installed, "run", "--help")
    unneeded = ("trainlaunch.init", "trainlaunch.script", "trainlaunch.rules", "trainlaunch.run", "yaml", "dataclasses")
    assert {each for each in loaded if each.startswith(unneeded)} == set()


def test_what_starts_a_run_loads_nothing_for_its_end(installed: Path) -> None:
    """The symptoms are loaded while the engine starts the container, and other targets' backends not at all."""
    needed = ", ".join(f"trainlaunch.run.{each}" for each in ("stores", "machine_up", "docker.backend"))
    program = f"import sys, trainlaunch.cli.verbs.up, {needed}; print('\\n'.join(sys.modules))"
    done = subprocess.run([str(installed), "-I", "-c", program], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.splitlines())
    assert "trainlaunch.run.supervise" in loaded
    unneeded = (
        "trainlaunch.diagnose",
        "trainlaunch.run.local.backend",
        "trainlaunch.run.kubernetes",
        "docker",
        "jinja2",
    )
    assert {each for each in loaded if each.startswith(unneeded)} == set()
