"""The layers of the package import downward only, and vendors' packages have one place each."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "launcher" / "trainlaunch"
# design order: each may import those before it, and itself
LAYERS = (
    *("units", "least_shm", "gpu_names", "exit_codes", "did_you_mean", "visible", "diagnostics", "errors"),
    *("manuals", "targets", "kinds", "repository"),
    *("yamltree", "formats", "templating", "job", "policy", "plan", "container", "rules", "render", "verify"),
    *("committed", "lint", "diagnose"),
    *("inside", "api", "run", "measure", "init", "cli"),
)
ONE_PLACE = {"docker": "run", "kubernetes": "run", "jinja2": "templating", "torch": "inside"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> list[str]:
    """Return every absolute module that a file imports, wherever in it."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append(node.module or "")
    return found


def layer_of(path: Path) -> str:
    """Return the layer that a module belongs to."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downward_only(path: Path) -> None:
    """A module imports its own layer or one before it."""
    if layer_of(path) in {"__init__", "__main__"}:
        return
    own = LAYERS.index(layer_of(path))
    for module in imports(path):
        if module.startswith("trainlaunch."):
            assert LAYERS.index(module.split(".")[1]) <= own, f"{path} imports {module}"


@pytest.mark.parametrize("vendor", sorted(ONE_PLACE))
def test_each_vendor_package_is_imported_in_one_module(vendor: str) -> None:
    """docker, kubernetes and jinja2 are each imported by at most one module, in their own layer; torch in its layer."""
    users = [path for path in MODULES if any(each.split(".")[0] == vendor for each in imports(path))]
    assert len(users) <= 1 or vendor == "torch", f"{vendor} is imported in {users}"
    assert all(layer_of(path) == ONE_PLACE[vendor] for path in users)


def test_modules_import_in_no_circle() -> None:
    """Two that need each other are one, or lack a third below both; imports for types and in functions count too."""
    names = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in MODULES}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    below = {name: {each for each in imported(path, names) if each != name} for name, path in names.items()}
    while leaves := {name for name, needed in below.items() if not needed & below.keys()}:
        below = {name: needed for name, needed in below.items() if name not in leaves}
    circles = {name: sorted(needed & below.keys()) for name, needed in below.items()}
    assert circles == {}


def imported(path: Path, names: Container[str]) -> Iterator[str]:
    """Yield the modules of `names` that a file imports: `from package import name` may name a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in names)
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                whole = f"{node.module}.{each.name}"
                yield whole if whole in names else node.module or ""


def test_modules_stay_short() -> None:
    """No module has more than 300 lines."""
    assert {path: lines for path in MODULES if (lines := len(path.read_text().splitlines())) > 300} == {}


def test_functions_stay_short() -> None:
    """No function has more than 40 lines, docstring included."""
    long = {
        f"{path.name}:{node.name}": node.end_lineno - node.lineno + 1
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.end_lineno or 0) - node.lineno >= 40
    }
    assert long == {}
