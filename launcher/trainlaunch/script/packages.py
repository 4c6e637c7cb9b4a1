"""From which folder a script must be started so that Python finds what it imports."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from trainlaunch.repository.root import is_home
from trainlaunch.script.source import MAX_FOLDERS_ABOVE, PythonSource, is_file, is_top

_SOURCES = "src"


class Start(NamedTuple):
    """The folder that a script's imports are looked for in; `module`: it is started by `python -m` there.

    `path` is what PYTHONPATH needs beside it, seen from that folder; `folder` the one below it that it is started in.
    """

    root: Path
    module: str = ""
    path: str = ""
    folder: str = ""


def start_of(script: Path, sources: tuple[PythonSource, ...]) -> Start | None:
    """Return how a script must be started so that Python finds what it imports; None where it does by itself."""
    source, file = sources[0], script.resolve()
    if any(called.startswith("sys.path.") for _, called in source.calls):
        return None
    levels = [each.level for each in source.nodes if isinstance(each, ast.ImportFrom) and each.level]
    if levels:
        if max(levels) >= len(file.parents):
            return None
        return _as_module(file, file.parents[max(levels)])
    names = [each for each in dict.fromkeys(_imported(source)) if each not in sys.stdlib_module_names]
    beside = [each for each in names if (file.parent, "") in _holding(file, each)]  # where `python -m` doesn't look
    for name in (each for each in names if each not in beside):
        for folder, below in _holding(file, name):
            is_own = file.relative_to(folder).parts[0] == name  # its own package: it is started as its module
            if below or (beside and not is_own):
                return Start(folder, path=below or ".")
            return _as_module(file, folder)
    return None


def start_among(script: Path, sources: tuple[PythonSource, ...], named: Iterable[str]) -> Start | None:
    """Return the start of a script that finds its modules by itself, where it needs more than its own folder.

    `named` are files that it names: where they lie as seen from its folder, or only from one above, it is started.
    So it is in its own where it adds `..` to sys.path.
    """
    file, names = script.resolve(), tuple(named)
    there = [each for each in names if is_file(file.parent / each)]
    above = max(each.split("/").count("..") for each in (*(each.name for each in sources), *there))
    for folder in () if there else _above(file):
        if _is_whole(folder):
            break
        if any(is_file(folder / each) for each in names) and above <= file.parents.index(folder):
            return Start(folder)
    if not above or above >= len(file.parents):
        return None
    root = file.parents[above]
    if _is_whole(root):
        return None
    inside = any(each.startswith("..") for each in there) or any(map(_adds_above, sources[0].calls))
    return Start(root, folder=file.parent.relative_to(root).as_posix() if inside else "")


def _is_whole(folder: Path) -> bool:
    """Whether a folder has a whole home or disk, which no draft mounts."""
    return folder == folder.parent or is_home(str(folder))


def _adds_above(found: tuple[ast.Call, str]) -> bool:
    """Whether a call adds the folder above the one that the script is started in to sys.path."""
    call, called = found
    text = ast.unparse(call)
    return called.startswith("sys.path.") and ("'..'" in text or "'../" in text) and "__file__" not in text


def _above(file: Path) -> Iterator[Path]:
    """Yield the folders above a script's, up to its project's."""
    for below, folder in itertools.pairwise(file.parents[: 2 + MAX_FOLDERS_ABOVE]):
        if is_top(below):
            return
        yield folder


def _as_module(file: Path, root: Path) -> Start | None:
    """Return the start of a file as a module of the outermost package around it, or of a folder without one."""
    while is_file(root / "__init__.py") and root != root.parent:
        root = root.parent
    parts = file.relative_to(root).with_suffix("").parts
    return Start(root, ".".join(parts)) if all(each.isidentifier() for each in parts) else None


def _imported(source: PythonSource) -> Iterator[str]:
    """Yield the first word of each module that is imported by its whole name."""
    for each in source.nodes:
        if isinstance(each, ast.Import):
            yield from (name.name.partition(".")[0] for name in each.names)
        elif isinstance(each, ast.ImportFrom) and each.module and not each.level:
            yield each.module.partition(".")[0]


def _holding(file: Path, name: str) -> Iterator[tuple[Path, str]]:
    """Yield the folders from the script's up to its project's that have a module of that name, or their src has."""
    for folder in file.parents[: 1 + MAX_FOLDERS_ABOVE]:
        for below in ("", _SOURCES):
            module = folder / below / name
            if is_file(module.with_suffix(".py")) or any(module.glob("*.py")):
                yield folder, below
        if is_top(folder):
            return
