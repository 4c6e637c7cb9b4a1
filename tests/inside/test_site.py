"""The delivered sitecustomize: silent until torch's module comes, and no reason for a job to fail."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from trainlaunch.container.instrumentation_files import PACKAGE

from tests.conftest import ROOT

SITE = ROOT / "launcher" / "trainlaunch" / "inside" / "site.py"
PROCESS = SITE.with_name("process.py")
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
    for source, delivered in ((SITE, tmp_path / "own" / "sitecustomize.py"), (PROCESS, package / "process.py")):
        delivered.write_text(source.read_text().replace("trainlaunch.inside", PACKAGE))
    (torch / "dataloader.py").write_text("class DataLoader: pass")
    return tmp_path


def python(
    folder: Path, text: str, *flags: str, parts: str = "part", path: tuple[str, ...] = ("own", "site")
) -> subprocess.CompletedProcess[str]:
    """Run Python with folders on its path: the delivery in front of the stand-in."""
    places = os.pathsep.join(str(folder / each) for each in path)
    env = {"PYTHONPATH": places, "TRAINLAUNCH_INSIDE": parts, "PATH": os.environ["PATH"]}
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


# How agents that watch a process hide the sitecustomize of others, and run it.
OFF_THE_PATH = """
import os, sys
print("agent")
here = os.path.dirname(os.path.abspath(__file__))
at, mine = sys.path.index(here), sys.modules.pop("sitecustomize")
del sys.path[at]
try:
    import sitecustomize
finally:
    sys.path.insert(at, here)
"""
BY_A_COPY = """
import os, sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
print("agent")
here = os.path.dirname(os.path.abspath(__file__))
spec = PathFinder.find_spec("sitecustomize", [each for each in sys.path if each != here])
spec.loader.exec_module(module_from_spec(spec))
"""


@pytest.mark.parametrize("agent", [OFF_THE_PATH, BY_A_COPY], ids=["off-the-path", "by-a-copy"])
@pytest.mark.parametrize("path", [("own", "agent", "site"), ("agent", "own", "site")], ids=["behind", "ahead"])
def test_a_sitecustomize_that_runs_its_next_one_runs_it_once(folder: Path, agent: str, path: tuple[str, ...]) -> None:
    """Before or behind ours on the path, each of the three runs once, and torch's module loads."""
    (folder / "agent").mkdir()
    (folder / "agent" / "sitecustomize.py").write_text(agent)
    (folder / "site" / "sitecustomize.py").write_text("print('theirs')")
    without = python(folder, USES_TORCH, path=("agent", "site"))
    assert (without.stdout, without.stderr) == ("agent\ntheirs\ntrains\n", "")
    done = python(folder, USES_TORCH, path=path)
    assert (done.stdout, done.stderr) == ("agent\ntheirs\ninstalled True\ntrains\n", "")


def test_two_deliveries_install_once(folder: Path) -> None:
    """A job that starts another one on the same machine hands its path on: the inner one's parts count."""
    shutil.copytree(folder / "own", folder / "outer")
    (folder / "outer" / PACKAGE / "part.py").write_text("def install(): print('the outer one')")
    done = python(folder, USES_TORCH, path=("own", "outer", "site"))
    assert (done.stdout, done.stderr) == ("installed True\ntrains\n", "")


@pytest.mark.parametrize("text", ["x = (", "import sys; sys.exit(3)", "raise ImportError('theirs')"])
def test_a_hidden_sitecustomize_that_is_broken_breaks_as_much_as_without_us(folder: Path, text: str) -> None:
    """The same code, and the same last words of Python."""
    (folder / "site" / "sitecustomize.py").write_text(text)
    without, done = (python(folder, USES_TORCH, path=path) for path in (("site",), ("own", "site")))
    assert done.stdout.replace("installed True\n", "") == without.stdout
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (without.returncode, without.stderr.splitlines()[-1:])
    assert without.stderr


def test_a_users_own_customization_runs(folder: Path) -> None:
    """Python loads it after ours, where the user's own packages are on."""
    (folder / "site" / "usercustomize.py").write_text("print('usercustomize')")
    text = "import site, sys; print(site.ENABLE_USER_SITE)"
    without, done = (python(folder, text, path=path) for path in (("site",), ("own", "site")))
    assert (done.stdout, done.stderr) == (without.stdout, without.stderr)
    assert done.stdout in {"usercustomize\nTrue\n", "False\n", "None\n"}


def test_a_script_that_empties_its_path_gets_the_parts(folder: Path) -> None:
    """It may drop the first entry, which is ours under -P."""
    own = str(folder / "own")
    text = f"import sys; sys.path.remove({own!r}); {USES_TORCH}; print({own!r} in sys.path)"
    done = python(folder, text)
    assert (done.stdout, done.stderr) == ("installed True\ntrains\nFalse\n", "")


FINDERS = {
    "too-old": "class Old:\n    def find_module(self, name, path=None): return None\n",
    "asks-all": (
        "import importlib.util\nclass Old:\n    busy = False\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if self.busy or not name.endswith('dataloader'): return None\n"
        "        self.busy = True\n"
        "        try: return importlib.util.find_spec(name)\n"
        "        finally: self.busy = False\n"
    ),
    "asks-the-others": (
        "import sys\nclass Old:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if not name.endswith('dataloader'): return None\n"
        "        asked = (each.find_spec(name, path) for each in sys.meta_path if each is not self)\n"
        "        return next(filter(None, asked), None)\n"
    ),
}
KEPT = """
from importlib.machinery import PathFinder
class Kept:
    __slots__ = ("loader",)
    def __init__(self, loader): self.loader = loader
    def create_module(self, spec): return None
    def exec_module(self, module): self.loader.exec_module(module)
class Old:
    def find_spec(self, name, path=None, target=None):
        spec = PathFinder.find_spec(name, path) if name.endswith("dataloader") else None
        if spec: spec.loader = Kept(spec.loader)
        return spec
"""


@pytest.mark.parametrize("finder", FINDERS.values(), ids=FINDERS)
@pytest.mark.parametrize("place", [0, 1])
def test_other_finders_may_be_old_or_ask_ours(folder: Path, finder: str, place: int) -> None:
    """Import hooks of debuggers, agents and type checkers stand before or behind ours."""
    done = python(folder, f"{finder}\nimport sys; sys.meta_path.insert({place}, Old())\n{USES_TORCH}")
    assert (done.stdout, done.stderr) == ("installed True\ntrains\n", "")


def test_a_loader_that_takes_no_attribute_loads_torch(folder: Path) -> None:
    """Nothing is installed then."""
    done = python(folder, f"{KEPT}\nimport sys; sys.meta_path.insert(1, Old())\n{USES_TORCH}")
    assert (done.stdout, done.stderr) == ("trains\n", "")


@pytest.mark.parametrize("text", ["sys.stderr = None", "sys.stderr.close()"])
def test_without_a_standard_error_a_part_that_fails_is_off(folder: Path, text: str) -> None:
    """Nobody hears of it, and the job goes on."""
    (folder / "own" / PACKAGE / "broken.py").write_text("1 / 0")
    done = python(folder, f"import sys; {text}\n{USES_TORCH}", parts="broken part")
    assert (done.returncode, done.stdout) == (0, "installed True\ntrains\n"), done.stderr


def test_a_hidden_sitecustomize_that_loads_torch_gets_the_parts(folder: Path) -> None:
    """Whoever loads it first."""
    (folder / "site" / "sitecustomize.py").write_text("import torch.utils.data.dataloader; print('theirs')")
    assert python(folder, USES_TORCH).stdout == "installed True\ntheirs\ntrains\n"


@pytest.mark.parametrize("flags", [("-S",), ("-I",), ("-E",), ()], ids=["-S", "-I", "-E", "no-path"])
def test_a_python_that_skips_site_or_the_path_trains(folder: Path, flags: tuple[str, ...]) -> None:
    """Then nothing is installed."""
    text = f"import sys; sys.path.append({str(folder / 'site')!r}); {USES_TORCH}"
    done = python(folder, text, *flags, path=("own",) if flags else ())
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


# What came after 3.8, of all that a part might use.
NEWER = {
    *("BaseExceptionGroup", "ExceptionGroup", "StrEnum", "TaskGroup", "add_note", "aclosing", "aiter", "anext"),
    *("bit_count", "cache", "get_annotations", "hardlink_to", "is_relative_to", "lcm", "orig_argv"),
    *("pairwise", "pidfd_open", "process_cpu_count", "randbytes", "removeprefix", "removesuffix"),
    *("stdlib_module_names", "strict=", "to_thread", "unparse", "waitstatus_to_exitcode"),
}


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield what code takes from elsewhere at this place."""
    if isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.ImportFrom):
        yield from (each.name for each in node.names)
    elif isinstance(node, ast.keyword):
        yield f"{node.arg}="


def test_no_part_uses_what_old_pythons_do_not_have() -> None:
    """One that does would be off there."""
    for path in sorted(SITE.parent.rglob("*.py")):
        names = {name for node in ast.walk(ast.parse(path.read_text())) for name in names_in(node)}
        assert not names & NEWER, path
