"""The files that lint looks into: those that are named, and those of folders that .gitignore doesn't leave out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from trainlaunch.repository.regular_files import read_regular
from trainlaunch.repository.root import OF_CI
from trainlaunch.units import MIB

_NEVER = frozenset({"node_modules", "__pycache__", ".git"})


class Pattern(NamedTuple):
    """One line of a .gitignore: what it matches below its folder, whether it takes files back, and only folders."""

    matches: re.Pattern[str]
    back: bool
    folders_only: bool


class Ignores(NamedTuple):
    """A folder's patterns, and where it is."""

    folder: str
    patterns: tuple[Pattern, ...]


def files_of(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield each named file once, and the files of named folders in the order of their names.

    Hidden ones are left out except where CI and devcontainers keep theirs; links to folders are not entered.
    """
    seen: set[Path] = set()
    for path in paths:
        for each in _below(path) if path.is_dir() else (path,):
            if each not in seen:
                seen.add(each)
                yield each


def _below(folder: Path) -> Iterator[Path]:
    yield from _walk(folder, tuple(_above(folder)))


def _above(folder: Path) -> Iterator[Ignores]:
    """Yield the patterns of the folders above, from the repository's root down; none outside a repository."""
    absolute = Path(os.path.normpath(folder.absolute()))
    if (absolute / ".git").exists():
        return
    found: list[Ignores] = []
    for parent in absolute.parents:
        found.append(Ignores(f"{parent}/", tuple(patterns_of(parent))))
        if (parent / ".git").exists():
            yield from reversed(found)
            return


def _walk(folder: Path, ignores: tuple[Ignores, ...]) -> Iterator[Path]:
    absolute = os.path.normpath(folder.absolute()) + "/"
    own = tuple(patterns_of(folder))
    ignores = (*ignores, Ignores(absolute, own)) if own else ignores
    try:
        entries = sorted(os.scandir(folder), key=lambda each: each.name)
    except OSError:
        return
    for entry in entries:
        if entry.name in _NEVER or (entry.name.startswith(".") and entry.name not in OF_CI):
            continue
        is_folder = entry.is_dir(follow_symlinks=False)
        if _is_ignored(absolute + entry.name, ignores, is_folder=is_folder):
            continue
        if is_folder:
            yield from _walk(folder / entry.name, ignores)
        elif entry.is_file(follow_symlinks=False) or (folder / entry.name).is_file():  # a link to itself is none
            yield folder / entry.name


def _is_ignored(path: str, ignores: Iterable[Ignores], *, is_folder: bool) -> bool:
    ignored = False
    for each in ignores:
        relative = path.removeprefix(each.folder)
        for pattern in each.patterns:
            if (is_folder or not pattern.folders_only) and pattern.matches.fullmatch(relative):
                ignored = not pattern.back
    return ignored


def patterns_of(folder: Path) -> Iterator[Pattern]:
    """Yield the patterns of a folder's .gitignore, as git reads them."""
    if (folder / ".gitignore").is_symlink():
        return  # which git doesn't follow
    try:
        lines = read_regular(folder / ".gitignore", MIB).decode("utf-8", "replace").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        text = line if line.endswith("\\ ") else line.rstrip()
        if not text or text.startswith("#"):
            continue
        back = text.startswith("!")
        text = text.removeprefix("!")
        folders_only = text.endswith("/")
        text = text.rstrip("/")
        anchored = text.removeprefix("/") if "/" in text else f"**/{text}"
        try:
            yield Pattern(re.compile(_expression(anchored)), back, folders_only)
        except re.error:
            continue


def _expression(text: str) -> str:
    """Return what a pattern matches: below any folders for `**/`, within one name for `*`."""
    groups = count()
    parts = [_joined(_pieces(part), "[^/]*?", "[^/]*", groups) for part in re.split(r"(?<!\*)\*\*/", text)]
    return _joined(parts, "(?:[^/]*/)*?", "(?:.*/)?", groups)


def _joined(pieces: list[str], least: str, most: str, groups: Iterator[int]) -> str:
    """Join pieces between which anything may stand: all but the last are taken where they first come, and for good.

    A group that is looked at ahead is not tried again, so that no path takes longer than it is long.
    """
    first, *others = pieces
    for each in others[:-1]:
        group = f"g{next(groups)}"
        first += f"(?=(?P<{group}>{least}{each}))(?P={group})"
    return first + (most + others[-1] if others else "")


def _pieces(text: str) -> list[str]:
    """Return what stands between the stars, as regular expressions."""
    pieces = [""]
    for part in re.findall(r"/\*\*\Z|\*+|\?|\[!?[^\]]*\]?|\\.|.", text):
        if part.startswith("*"):
            pieces.append("")
        elif part == "/**":
            pieces[-1] += "/.*"
        elif part == "?":
            pieces[-1] += "[^/]"
        elif part.startswith("[") and part.endswith("]") and len(part) > 2:
            pieces[-1] += re.sub(r"(?<!^)[\[&|~]", r"\\\g<0>", "[^/" + part[2:] if part.startswith("[!") else part)
        else:
            pieces[-1] += re.escape(part[-1] if part.startswith("\\") else part)
    return pieces
