"""What a training script says of its DataLoaders and data sets, as far as its syntax tree alone is certain."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from trainlaunch.diagnostics import Span
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.rules.sources.source_text import SourceText

# What is wrong and how it is mended in the same words where a running script shows it.
HANDLE_FIX = "open it in __getitem__, or once in each worker where it is still None"
HANDLE_WHY = "forked workers share the file's offset and read each other's samples, without an error"
CUDA_FIX = "return tensors of the CPU, and move each batch in the training loop"
CUDA_WHY = "CUDA can't be used in a forked process whose parent has used it"
PICKLE_FIX = "write a function of the module"
PICKLE_WHY = "spawn and forkserver pickle the data set and the functions for each worker"
_OF_CONTAINERS = re.compile(
    r"^(?:docker.*|.*\.dockerfile|containerfile.*|(?=(?:.*[-_.])?compose).*\.ya?ml|k8s|kubernetes|helm|charts?|\.devcontainer"
    r"|.*\.(?:sif|def))$",
    re.IGNORECASE,
)
_PICKLING = frozenset({"spawn", "forkserver"})


def loaders(tree: ast.AST | None) -> Iterator[ast.Call]:
    """Yield each call of DataLoader."""
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and name_of(node.func).rpartition(".")[2] == "DataLoader":
            yield node


def argument(call: ast.Call, name: str) -> ast.expr | None:
    """Return the value of a keyword of a call; None where it isn't given."""
    return next((each.value for each in call.keywords if each.arg == name), None)


def has_workers(tree: ast.AST | None, least: int = 1) -> bool:
    """Return whether a loader sets so many workers by a number."""
    stated = (argument(each, "num_workers") for each in loaders(tree))
    return any(
        isinstance(each, ast.Constant) and isinstance(each.value, int) and each.value >= least for each in stated
    )


def is_used(file: SourceText, name: str) -> bool:
    """Return whether a module makes what a class of its own is called, so that its own loaders have it."""
    return file.text.count(f"{name}(") > 1


def may_run_in_container(file: SourceText) -> bool:
    """Return whether something in the folders around a script, up to its repository's, is for containers."""
    path = Path(file.source.span(0, 0).file).absolute()
    root = ITS_OWN.root(path)
    return any(_holds_container_texts(each) for each in path.parents if each.is_relative_to(root))


@functools.lru_cache(maxsize=256)
def _holds_container_texts(folder: Path) -> bool:
    try:
        names = [each.name for each in folder.iterdir()]
    except OSError:
        return False
    return any(map(_OF_CONTAINERS.match, names))


def pickles(call: ast.Call) -> str:
    """Return the start method that a loader sets, if its workers get everything pickled; empty otherwise."""
    context = argument(call, "multiprocessing_context")
    if isinstance(context, ast.Call) and name_of(context.func).rpartition(".")[2] == "get_context" and context.args:
        context = context.args[0]
    word = context.value if isinstance(context, ast.Constant) else None
    return word if isinstance(word, str) and word in _PICKLING else ""


def datasets(tree: ast.AST | None) -> Iterator[ast.ClassDef]:
    """Yield each class whose base is called a data set and that gives single items."""
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ClassDef) and method(node, "__getitem__") is not None:
            bases = [name_of(each.value if isinstance(each, ast.Subscript) else each) for each in node.bases]
            if any(each.endswith("Dataset") and not each.endswith("IterableDataset") for each in bases):
                yield node


def method(owner: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    """Return a method of a class; None where it has none of that name."""
    return next((each for each in owner.body if isinstance(each, ast.FunctionDef) and each.name == name), None)


def name_of(node: ast.AST) -> str:
    """Return a dotted name, empty for any other expression."""
    if isinstance(node, ast.Attribute):
        inner = name_of(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return node.id if isinstance(node, ast.Name) else ""


def is_guarded(tree: ast.Module) -> bool:
    """Return whether a module asks for its name, as `if __name__ == "__main__"` does."""
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(tree))


def span_of(file: SourceText, node: ast.expr | ast.stmt) -> Span:
    """Return the place of a node; the tree counts bytes, a place characters."""
    name = file.source.span(0, 0).file
    lines = file.text.split("\n")
    end_line, end_offset = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    columns = [
        len(lines[line - 1].encode("utf-8")[:offset].decode("utf-8", errors="replace")) + 1
        for line, offset in ((node.lineno, node.col_offset), (end_line, end_offset))
    ]
    return Span(name, node.lineno, columns[0], end_line, columns[1])
