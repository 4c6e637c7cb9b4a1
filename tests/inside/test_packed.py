"""Modules of probe and tune come as one compressed text, which the package's own finder reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from trainlaunch.container.instrumentation_files import PACKAGE, PACKED, inside_files
from trainlaunch.inside.packed import unpacked
from trainlaunch.plan.instrumentation import PROBE, TUNE, Instrumentation
from trainlaunch.plan.launch_plan import LaunchPlan

from tests.inside.test_site import SITE

PARTS = [each for each in (PROBE, TUNE) if (SITE.parent / each).is_dir()]


def files(*parts: str) -> dict[str, str]:
    return dict(inside_files(cast("LaunchPlan", SimpleNamespace(inside=Instrumentation(parts)))))


@pytest.mark.parametrize("part", PARTS)
def test_every_module_arrives_as_it_is_written(part: str) -> None:
    """Under the name that the package has in the container."""
    modules = unpacked(files(part)[f"{PACKAGE}/{PACKED}"])
    for path in [*(SITE.parent / part).rglob("*.py"), SITE.parent / "marked.py"]:
        written = path.read_text(encoding="utf-8").replace("trainlaunch.inside", PACKAGE)
        assert modules[f"{PACKAGE}/{path.relative_to(SITE.parent).as_posix()}"] == written


@pytest.mark.parametrize("part", PARTS)
def test_a_module_knows_its_file_and_its_package(part: str, tmp_path: Path) -> None:
    """Tracebacks and what looks beside a module's file see the folder, and nothing of it is written there."""
    for name, text in files(part).items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    tried = f"import trainlaunch_inside.{part} as a, trainlaunch_inside.marked as b; print(a.__file__, b.__file__)"
    done = subprocess.run([sys.executable, "-B", "-c", tried], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{tmp_path}/{PACKAGE}/{part}/__init__.py", f"{tmp_path}/{PACKAGE}/marked.py"]
    assert sorted(each.name for each in (tmp_path / PACKAGE).iterdir()) == ["__init__.py", PACKED]
