"""Parsed Python files, and the links in them that reading a script needs: parents, imports, functions, calls."""

from __future__ import annotations

import ast
import functools
import os
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainlaunch.repository.regular_files import read_regular
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.units import MIB

Function = ast.FunctionDef | ast.AsyncFunctionDef
MAX_FILES = 30
MAX_FOLDERS_ABOVE = 3  # folders above the script's, up to the top of its project
MAX_BYTES = MIB  # of a script or module
TOP_OF_PROJECT = (".git", "pyproject.toml", "setup.py", "setup.cfg")


class PythonSource:
    """One file: `name` is how places in it are called, like train.py."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.tree = tree

    @functools.cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node, in the order of the text as far as statements go."""
        return tuple(_in_order(self.tree))

    @functools.cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node around each node."""
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @functools.cached_property
    def calls(self) -> tuple[tuple[ast.Call, str], ...]:
        """Every call with the whole name of what it calls."""
        return tuple((node, self.dotted(node.func)) for node in self.nodes if isinstance(node, ast.Call))

    @functools.cached_property
    def functions(self) -> tuple[Function, ...]:
        """Every function and method."""
        return tuple(each for each in self.nodes if isinstance(each, Function))

    @functools.cached_property
    def returned(self) -> dict[Function | None, list[ast.expr | None]]:
        """What each function returns, by its statements."""
        found: dict[Function | None, list[ast.expr | None]] = {}
        for each in self.nodes:
            if isinstance(each, ast.Return):
                found.setdefault(self.function(each), []).append(each.value)
        return found

    @functools.cached_property
    def imports(self) -> dict[str, str]:
        """The whole name behind each imported one: `F` → `torch.nn.functional`."""
        found: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for each in node.names:
                    found[each.asname or each.name.split(".")[0]] = (
                        each.name if each.asname else each.name.split(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                found |= {each.asname or each.name: f"{node.module or ''}.{each.name}" for each in node.names}
        return found

    def place(self, node: ast.AST) -> str:
        """Return file:line of a node."""
        return f"{self.name}:{getattr(node, 'lineno', 1)}"

    def dotted(self, node: ast.expr) -> str:
        """Return the whole name of what an expression names: `data.DataLoader` → `torch.utils.data.DataLoader`."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ".".join(reversed(parts))
        return ".".join([self.imports.get(node.id, node.id), *reversed(parts)])

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, from the inside out."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function(self, node: ast.AST) -> Function | None:
        """Return the function around a node."""
        return next((each for each in self.around(node) if isinstance(each, Function)), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """Return the class around a node."""
        return next((each for each in self.around(node) if isinstance(each, ast.ClassDef)), None)


def _in_order(tree: ast.Module) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(list(ast.iter_child_nodes(node)))


def parse(text: str, name: str) -> PythonSource:
    """Return a parsed file; Python's parser raises SyntaxError, ValueError, RecursionError or MemoryError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a script's invalid escapes are its own affair
        return PythonSource(name, ast.parse(text))


def imported(path: Path, first: PythonSource, named: Iterable[str] = ()) -> tuple[PythonSource, ...]:
    """Return a script and the modules that it imports from its folder or one above, and theirs.

    `named` are whole names that something else imports for it.

    Names of places are as seen from the script's folder. What can't be read is left out.
    """
    found, waiting = {path.resolve(): first}, [(path, first)]
    while waiting and len(found) < MAX_FILES:
        importer, source = waiting.pop(0)
        for name in dict.fromkeys([*source.imports.values(), *(named if source is first else ())]):
            module = next(_files(_roots(path, importer), name.lstrip(".")), None)
            if module is None or module.resolve() in found or not ITS_OWN.holds(module, module):
                continue
            read = _module(module, Path(os.path.relpath(module, path.parent)).as_posix())
            if read is not None:
                found[module.resolve()] = read
                waiting.append((module, read))
    return tuple(found.values())


def _module(path: Path, name: str) -> PythonSource | None:
    try:
        return _parsed(path, name, path.stat().st_mtime_ns)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None


@functools.lru_cache(maxsize=64)  # of which many scripts of a repository share some
def _parsed(path: Path, name: str, _changed: int) -> PythonSource:
    return parse(read_regular(path, MAX_BYTES).decode(), name)


def _roots(script: Path, importer: Path) -> Iterator[Path]:
    """Yield the folders in which an import is looked for: the file's own, the script's, then those of its project."""
    yield from dict.fromkeys((importer.parent, script.parent))
    for folder in script.resolve().parents[: 1 + MAX_FOLDERS_ABOVE]:
        yield from (folder, folder / "src")
        if is_top(folder):
            return


def is_file(path: Path) -> bool:
    """Whether a file is there; a folder that this user can't look into has none."""
    return os.path.isfile(path)  # noqa: PTH113 - Path's raises


def is_top(folder: Path) -> bool:
    """Whether a folder is the top of a project, with the same exception."""
    return any(os.path.exists(folder / mark) for mark in TOP_OF_PROJECT)  # noqa: PTH110 - Path's raises


def _files(roots: Iterable[Path], name: str) -> Iterator[Path]:
    """Yield the files that an imported name may mean: `data.loaders.build` is data/loaders.py, or data/__init__.py."""
    parts = name.split(".")
    if not parts[0]:
        return
    for root in roots:
        for count in range(len(parts), 0, -1):
            if not all(part.isidentifier() for part in parts[:count]):
                continue
            folder = root.joinpath(*parts[:count])
            for path in (folder.with_suffix(".py"), folder / "__init__.py"):
                if is_file(path):
                    yield path


def literal(node: ast.expr) -> object:
    """Return the value that an expression sets; None where it sets none."""
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value
