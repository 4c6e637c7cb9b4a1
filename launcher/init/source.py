"""Parsed Python files, and the links in them that reading a script needs: parents, imports, functions, calls."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
MOST_FILES = 30


@dataclass(frozen=True)
class Source:
    """One file: `name` is how places in it are called, like train.py."""

    name: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node, in the order of the text as far as statements go."""
        return tuple(_in_order(self.tree))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node around each node."""
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def calls(self) -> tuple[tuple[ast.Call, str], ...]:
        """Every call with the whole name of what it calls."""
        return tuple((node, self.dotted(node.func)) for node in self.nodes if isinstance(node, ast.Call))

    @cached_property
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


def parse(text: str, name: str) -> Source:
    """Return a parsed file; Python's parser raises SyntaxError, ValueError, RecursionError or MemoryError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a script's invalid escapes are its own affair
        return Source(name, ast.parse(text))


def beside(path: Path, first: Source) -> tuple[Source, ...]:
    """Return a script and the modules of its own folder that it imports, and theirs; what can't be read is left out."""
    found, waiting = {path.stem: first}, [first]
    while waiting and len(found) < MOST_FILES:
        for name in dict.fromkeys(waiting.pop(0).imports.values()):
            module = next((each for each in _files(path.parent, name.lstrip("."))), None)
            if module is None or module.stem in found:
                continue
            try:
                source = parse(module.read_text(encoding="utf-8"), module.relative_to(path.parent).as_posix())
            except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            found[module.stem] = source
            waiting.append(source)
    return tuple(found.values())


def _files(folder: Path, name: str) -> Iterator[Path]:
    """Yield the files that an imported name may mean: `data.loaders.build` is data/loaders.py, or data.py."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        path = folder.joinpath(*parts[:count]).with_suffix(".py")
        if all(part.isidentifier() for part in parts[:count]) and path.is_file():
            yield path
