"""What git tracks in a folder, and what it neither tracks nor ignores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from trainlaunch.repository.git_directory import ForeignIndex, foreign_index

_SUBMODULE = b"160000"


class GitFiles(NamedTuple):
    """Paths below a folder: those that git tracks, files of checked-out submodules too, and new ones."""

    tracked: tuple[str, ...]
    untracked: tuple[str, ...]


def git_files(folder: Path) -> GitFiles | None:
    """Return what git says of a folder, None where it is in no repository; raises GitFailed where git can't tell.

    Variables like GIT_DIR, which a hook has, don't count, nor does the repository's configuration: its index is read.
    """
    folder = folder.resolve()
    work_tree = next((each for each in (folder, *folder.parents) if os.path.lexists(each / ".git")), None)
    if work_tree is None:
        return None
    with foreign_index(work_tree) as index:
        tracked = _tracked(index, folder)
        untracked = index.listed(folder, "--others", "--exclude-standard")
    return GitFiles(tuple(sorted(tracked)), tuple(sorted(map(os.fsdecode, untracked))))


def _tracked(index: ForeignIndex, folder: Path) -> set[str]:
    found: set[str] = set()
    for entry in index.listed(folder, "--stage"):
        mode, _, name = entry.partition(b" ")
        path = os.fsdecode(name.partition(b"\t")[2])
        if path.endswith("/"):
            continue  # a folder that a sparse checkout leaves out
        if mode == _SUBMODULE and (below := _submodule(folder / path)) is not None:
            found.update(f"{path}/{each}" for each in below)
        else:
            found.add(path)
    return found


def _submodule(folder: Path) -> tuple[str, ...] | None:
    """Return what a submodule tracks, None for one that is not checked out, or that a link stands in for."""
    if not (folder / ".git").exists() or Path(os.path.realpath(folder)) != folder:
        return None
    below = git_files(folder)
    return below.tracked if below else None
