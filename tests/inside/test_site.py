"""The delivered sitecustomize: silent until torch's module comes, and no reason for a job to fail."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.container.inside import PACKAGE
from tests.conftest import ROOT

SITE = ROOT / "launcher" / "inside" / "site.py"
OLDEST = (3, 8)
PART = """
import sys
def install():
    print("installed", hasattr(sys.modules["torch.utils.data.dataloader"], "DataLoader"))
"""
USES_TORCH = "from torch.utils.data.dataloader import DataLoader; print('trains')"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a delivery with one part, beside a stand-in for torch and another sitecustomize."""
    package, torch = tmp_path / "own" / PACKAGE, tmp_path / "site" / "torch" / "utils" / "data"
    package.mkdir(parents=True)
    torch.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "part.py").write_text(PART)
    (tmp_path / "own" / "sitecustomize.py").write_text(SITE.read_text().replace("launcher.inside", PACKAGE))
    (torch / "dataloader.py").write_text("class DataLoader: pass")
    return tmp_path


def python(folder: Path, text: str, *flags: str, parts: str = "part") -> subprocess.CompletedProcess[str]:
    """Run Python with the delivery in front of its path, and the stand-in behind."""
    path = os.pathsep.join((str(folder / "own"), str(folder / "site")))
    env = {"PYTHONPATH": path, "TRAINLAUNCH_INSIDE": parts, "PATH": os.environ["PATH"]}
    return subprocess.run([sys.executable, *flags, "-c", text], env=env, capture_output=True, text=True, check=False)


def test_parts_come_with_torchs_module(folder: Path) -> None:
    """After it was executed, once, and before the script's next line."""
    done = python(folder, f"print('starts'); {USES_TORCH}; import torch.utils.data.dataloader")
    assert (done.stdout, done.stderr) == ("starts\ninstalled True\ntrains\n", "")


def test_nothing_is_loaded_without_torch(folder: Path) -> None:
    """A Python that doesn't train pays for one small file."""
    done = python(
        folder, "import sys; print(sorted(each for each in sys.modules if 'trainlaunch' in each or 'typing' in each))"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize(
    "part", ["raise ValueError('a\\nb')", "import missing_module", "def install(): 1 / 0", "x = ("]
)
def test_a_part_that_fails_is_off(folder: Path, part: str) -> None:
    """Said in one line; the others and the job go on."""
    (folder / "own" / PACKAGE / "broken.py").write_text(part)
    done = python(folder, USES_TORCH, parts="broken absent part")
    assert (done.returncode, done.stdout) == (0, "installed True\ntrains\n")
    assert [each.split(" in process ")[0] for each in done.stderr.splitlines()] == [
        "trainlaunch: broken is off",
        "trainlaunch: absent is off",
    ]


def test_the_hidden_sitecustomize_runs(folder: Path) -> None:
    """As the module of that name, and where it raises, as without trainlaunch."""
    (folder / "site" / "sitecustomize.py").write_text("import sys; print('theirs', __file__); mine = 1")
    done = python(folder, f"import sitecustomize; print(sitecustomize.mine); {USES_TORCH}")
    path = folder / "site" / "sitecustomize.py"
    assert (done.stdout, done.stderr) == (f"theirs {path}\n1\ninstalled True\ntrains\n", "")
    (folder / "site" / "sitecustomize.py").write_text("raise OSError('theirs')")
    done = python(folder, USES_TORCH)
    assert (done.returncode, done.stdout) == (0, "installed True\ntrains\n")
    assert "OSError: theirs" in done.stderr


def test_a_hidden_sitecustomize_that_loads_torch_gets_the_parts(folder: Path) -> None:
    """Whoever loads it first."""
    (folder / "site" / "sitecustomize.py").write_text("import torch.utils.data.dataloader; print('theirs')")
    assert python(folder, USES_TORCH).stdout == "installed True\ntheirs\ntrains\n"


@pytest.mark.parametrize("flags", [("-S",), ("-I",), ("-E",)])
def test_a_python_that_skips_site_or_the_path_trains(folder: Path, flags: tuple[str, ...]) -> None:
    """Then nothing is installed."""
    done = python(folder, f"import sys; sys.path.append({str(folder / 'site')!r}); {USES_TORCH}", *flags)
    assert (done.returncode, done.stdout, done.stderr) == (0, "trains\n", "")


def test_a_torch_that_fails_to_load_fails_as_without_us(folder: Path) -> None:
    """And may be loaded again."""
    dataloader = folder / "site" / "torch" / "utils" / "data" / "dataloader.py"
    dataloader.write_text("import os\nif os.environ.pop('PATH', ''): raise OSError('first')\nclass DataLoader: pass")
    done = python(
        folder, f"try: import torch.utils.data.dataloader\nexcept OSError as error: print(error)\n{USES_TORCH}"
    )
    assert (done.stdout, done.stderr) == ("first\ninstalled True\ntrains\n", "")


def test_spawned_processes_get_the_parts(folder: Path) -> None:
    """DataLoader workers under spawn and forkserver are new Pythons."""
    script = folder / "train.py"
    script.write_text(
        "import multiprocessing, torch.utils.data.dataloader\n"
        "def work(): print('works', flush=True)\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context('spawn').Process(target=work); process.start(); process.join()\n"
    )
    path = os.pathsep.join((str(folder / "own"), str(folder / "site")))
    env = {"PYTHONPATH": path, "TRAINLAUNCH_INSIDE": "part", "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, check=False)
    assert sorted(done.stdout.split("\n")) == ["", "installed True", "installed True", "works"]


def test_every_file_is_for_old_pythons_and_for_a_shell_text() -> None:
    """An image's Python may be 3.8; a YAML literal block holds no tab and no blank at a line's end."""
    for path in sorted(SITE.parent.rglob("*.py")):
        text = path.read_text()
        ast.parse(text, feature_version=OLDEST)
        assert "\t" not in text, path
        assert [line for line in text.splitlines() if line != line.rstrip()] == [], path
        assert text.endswith("\n") or not text, path


def test_no_annotation_is_evaluated_that_old_pythons_do_not_know() -> None:
    """`list[int]` and `X | Y` raise there."""
    for path in sorted(SITE.parent.rglob("*.py")):
        text = path.read_text()
        assert path == SITE or path.name == "__init__.py" or "from __future__ import annotations\n" in text, path
    assert "from __future__" not in SITE.read_text()  # older ones say so at every start
