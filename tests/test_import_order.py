"""The package's folders import downward only, and its modules are short and found by their names."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from trainlaunch.targets import TARGETS, TEXTS

PACKAGE = Path(__file__).parent.parent / "launcher" / "trainlaunch"
# Design order of the rooms, and of the modules beside them: each may import those before it, and itself.
LAYERS = (
    *("units", "least_shm", "gpu_names", "exit_codes", "did_you_mean", "sanitize", "diagnostics", "errors"),
    *("manuals", "targets", "kinds", "repository"),
    *("yamltree", "formats", "templating", "script", "job", "policy", "plan", "container", "rules", "render", "verify"),
    *("committed", "lint", "diagnose"),
    *("inside", "api", "run", "measure", "init", "cli"),
)
ONE_PLACE = {"docker": "run", "kubernetes": "run", "jinja2": "templating", "torch": "inside"}
MAX_LINES, MAX_FUNCTION_LINES, MAX_SIBLINGS = 300, 40, 30
# What has these names, or stands in a folder of such a name, may be called as its like of another target.
OF_TARGETS = {*TARGETS, *TEXTS, *(each.replace("-", "_") for each in TEXTS), "podman"}


@functools.cache
def modules() -> Mapping[str, Path]:
    """Return the files of the package by the names of their modules, a folder's `__init__` by the folder's."""
    found = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in found.items()}


@functools.cache
def tree(path: Path) -> ast.Module:
    """Return a file as Python reads it."""
    return ast.parse(path.read_text())


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """Return all that a file imports, wherever in it: `from package import name` may name a module."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            whole = {f"{node.module}.{each.name}" for each in node.names}
            found |= {each for each in whole if each in modules()} or {node.module or ""}
    return frozenset(found)


def edges() -> Iterator[tuple[str, str]]:
    """Yield each (module, module of ours that it imports)."""
    for name, path in modules().items():
        yield from ((name, each) for each in imports(path) if each in modules() and each != name)


def layer(module: str) -> int:
    """Return the layer of a module's room; the package itself is below all, what starts it above."""
    room = module.partition(".")[2].partition(".")[0]
    return LAYERS.index(room) if room in LAYERS else len(LAYERS) if room else -1


def folder(module: str) -> str:
    """Return a module's folder; one beside the rooms stands for itself."""
    inside = module.count(".") > 1 and modules()[module].name != "__init__.py"
    return module.rpartition(".")[0] if inside else module


def circles(below: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """Return what is left of a graph without those that stand on no circle, nor between two."""
    left = dict(below)
    while left:
        needed = set().union(*left.values())
        kept = {name: more & left.keys() for name, more in left.items() if more & left.keys() and name in needed}
        if kept == left:
            break
        left = kept
    return {name: sorted(more) for name, more in left.items()}


def graph(pairs: Iterator[tuple[str, str]]) -> dict[str, set[str]]:
    """Return who needs whom."""
    below: dict[str, set[str]] = {}
    for one, other in pairs:
        below.setdefault(one, set()).add(other)
        below.setdefault(other, set())
    return below


def test_rooms_import_downward_only() -> None:
    """A module imports its own room or one before it."""
    assert [f"{one} imports {other}" for one, other in edges() if layer(other) > layer(one)] == []


def test_a_folder_is_foundation_or_roof() -> None:
    """No two folders import each other, nor around a third: what one has and another needs stands below both."""
    between = ((folder(one), folder(other)) for one, other in edges())
    assert circles(graph((one, other) for one, other in between if one != other)) == {}


def test_modules_import_in_no_circle() -> None:
    """Two that need each other are one, or lack a third below both; imports for types and in functions count too."""
    assert circles(graph(edges())) == {}


def test_each_vendor_package_is_imported_in_one_module() -> None:
    """docker, kubernetes and jinja2 are each imported by at most one module, in their own room; torch in its room."""
    users = {
        vendor: [
            name for name, path in modules().items() if any(each.split(".")[0] == vendor for each in imports(path))
        ]
        for vendor in ONE_PLACE
    }
    assert {vendor: found for vendor, found in users.items() if len(found) > 1 and vendor != "torch"} == {}
    assert {
        each for vendor, found in users.items() for each in found if each.split(".")[1] != ONE_PLACE[vendor]
    } == set()


def test_folders_and_names_are_found() -> None:
    """At most 30 stand in a row, and a file's name says which one it is, outside the folders that targets have."""
    siblings = Counter(path.parent for path in modules().values() if path.name != "__init__.py")
    crowded = [str(path.relative_to(PACKAGE)) for path, number in siblings.items() if number > MAX_SIBLINGS]
    assert crowded == []
    paths = [path for path in modules().values() if not OF_TARGETS & {*path.relative_to(PACKAGE).with_suffix("").parts}]
    named = Counter(path.name for path in paths if path.name != "__init__.py")
    assert sorted(name for name, number in named.items() if number > 1) == []


def test_modules_and_functions_are_short() -> None:
    """Docstrings included."""
    texts = {name: path.read_text() for name, path in modules().items()}
    assert {name: lines for name, text in texts.items() if (lines := len(text.splitlines())) > MAX_LINES} == {}
    functions = (
        (f"{name}.{node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for name, text in texts.items()
        for node in ast.walk(tree(modules()[name]))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    assert {name: lines for name, lines in functions if lines > MAX_FUNCTION_LINES} == {}
