"""What git tracks in a folder, and what it neither tracks nor ignores."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

_SECONDS = 60
# Nothing that a repository's own settings name is run, and its index is left as it is, whoever owns the folder.
_ASKED = ("-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false")
_NO_REPOSITORY = "not a git repository"


class GitFailed(Exception):
    """Git can't be asked, though the folder is in a repository; the text says why."""


class GitFiles(NamedTuple):
    """Paths below a folder: those that git tracks, files of checked-out submodules too, and new ones."""

    tracked: tuple[str, ...]
    untracked: tuple[str, ...]


def git_files(folder: Path) -> GitFiles | None:
    """Return what git says of a folder, None where it is in no repository; raises GitFailed where git can't tell.

    Variables like GIT_DIR, which a hook has, don't count: the folder's own repository is asked.
    """
    if not _may_be_tracked(folder):
        return None
    program = shutil.which("git")
    if program is None:
        raise GitFailed("git is not installed here")
    try:
        tracked = _listed(program, folder, "--cached", "--recurse-submodules")
        untracked = _listed(program, folder, "--others", "--exclude-standard")
    except GitFailed as cause:
        if _NO_REPOSITORY in str(cause):
            return None
        raise
    return GitFiles(tracked, untracked)


def _may_be_tracked(folder: Path) -> bool:
    place = folder.resolve()
    return any((each / ".git").exists() for each in (place, *place.parents))


def _listed(program: str, folder: Path, *options: str) -> tuple[str, ...]:
    env = {
        "PATH": os.pathsep.join((str(Path(program).parent), os.defpath)),
        "HOME": str(Path("~").expanduser()),
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
    }
    argv = (program, *_ASKED, "-C", str(folder), "ls-files", "-z", *options)
    try:
        done = subprocess.run(
            argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as cause:
        raise GitFailed(str(cause)) from cause
    if done.returncode:
        raise GitFailed(" ".join(os.fsdecode(done.stderr).split()) or f"git ls-files ends with {done.returncode}")
    return tuple(sorted({os.fsdecode(each) for each in done.stdout.split(b"\0") if each}))
