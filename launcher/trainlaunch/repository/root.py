"""How far a file may lead: to the root of the repository that it lies in, and into what the user allows beside that.

What a job file, a policy or the header of a rendered file names is read only there: each may be a stranger's, and what
is printed of it must be that stranger's too.
"""

from __future__ import annotations

import functools
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from trainlaunch.diagnostics import Diagnostic, Span
from trainlaunch.repository.regular_files import is_of_shell


class Repository(NamedTuple):
    """The root of a file's repository, and the repositories around it that track nothing of it."""

    root: Path
    around: tuple[Path, ...]


class Reach(NamedTuple):
    """What the user named: the directories `given` to a command, and those `allowed` to be led to from anywhere."""

    given: tuple[Path, ...] = ()
    allowed: tuple[Path, ...] = ()

    def root(self, file: Path) -> Path:
        """Return how far up `file` may lead: its repository's root, else the folder given, the current or its own."""
        return min(self._roots(file), key=lambda each: len(each.parts))

    def holds(self, path: Path, file: Path) -> bool:
        """Whether `path`, which `file` names, may be read: links on its way count as where they lead to."""
        try:
            real = Path(os.path.realpath(path))
        except (ValueError, FileNotFoundError):
            return True  # no file has that name, or is in a folder that was deleted, which its reader says
        for own in self._roots(file):
            root = Path(os.path.realpath(own))
            if not real.is_relative_to(root):
                continue
            # The file that is named, without a link on its way, is no secret of anybody's.
            if not is_private(real, root) or (path == file and own / real.relative_to(root) == _absolute(file)):
                return True
        return any(real.is_relative_to(os.path.realpath(each)) for each in self.allowed)

    def _roots(self, file: Path) -> tuple[Path, ...]:
        """Return the root of a file's repository; without one its folder, and those given and the current around it."""
        found = repository_of(file)
        if found:
            return (found.root,)
        own = _absolute(file).parent
        named = [_absolute(each) for each in (*self.given, *_current_folder())]
        above = [
            each for each in named if own.is_relative_to(each) and each.parent != each and not is_private(own, each)
        ]
        return (own, *above)


# Hidden folders and files of a repository that hold what is linted and rendered.
OF_CI = frozenset({".github", ".devcontainer", ".devcontainer.json", ".gitlab-ci.yml", ".buildkite", ".gitlab"})
ITS_OWN = Reach()  # nothing is named: a repository and nothing else


def outside(file: Path, what: str, reach: Reach, fix: str, span: Span | None = None) -> Diagnostic:
    """Return the error for `what`, a path that `file` names and that its repository doesn't hold."""
    root = reach.root(file)
    return Diagnostic(
        "TL135",
        f"{what} leads out of {root}",
        fix,
        why="nothing is read or written that a repository names outside of its files, and a .git is none of them",
        span=span,
    )


def link_outside(path: Path, reach: Reach, fix: str) -> Diagnostic | None:
    """Return the error for a file that is a link out of its repository, None for any other and what a shell opened."""
    if is_of_shell(path) or reach.holds(path, path):
        return None
    return outside(path, f"{path}, a link,", reach, fix)  # no place: it would be quoted


def repository_of(file: Path) -> Repository | None:
    """Return the repository of a file as its path is written, else as its folder's links lead; None outside of one.

    It is the outermost that tracks what lies in it. One in a home folder counts for what it tracks alone: it keeps
    dotfiles, and all else that lies there is none of its own.
    """
    folder = str(_absolute(file).parent)
    return _repository(folder) or _repository(os.path.realpath(folder))


def _repository(folder: str) -> Repository | None:
    found = list(_marked(folder))
    if not found:
        return None
    if len(found) == 1 and not is_home(found[0]):
        return Repository(Path(found[0]), ())
    root: str | None = None
    around: list[str] = []
    for each in found:
        if _counts(each, root, folder):
            root, around = each, []
        else:
            around.append(each)
    if root is None:
        return None
    from trainlaunch.repository.git import is_worktree_of  # one repository within another is seldom

    apart = (each for each in around if not is_home(each) and not is_worktree_of(Path(root), Path(each)))
    return Repository(Path(root), tuple(map(Path, apart)))


def _counts(repository: str, root: str | None, folder: str) -> bool:
    """Whether a repository is the root of `folder`, where `root` is the outermost so far."""
    if is_home(repository):
        return root is None and _tracks(repository, folder, _stamp(repository))
    return root is None or _tracks(repository, root, _stamp(repository))


def _marked(folder: str) -> Iterator[str]:
    """Yield the folders with a .git, from the inside out. Text, not paths: `check` asks this thousands of times."""
    while True:
        if os.path.lexists(f"{folder}/.git"):
            yield folder or "/"
        if folder in {"", "/"}:
            return
        folder = folder.rpartition("/")[0]


def is_home(folder: str) -> bool:
    """Whether a folder is the home of this user, or of the one whom it belongs to."""
    homes = {os.environ.get("HOME", "")}
    for uid in (os.geteuid(), _owner(folder)):
        try:
            homes.add(pwd.getpwuid(uid).pw_dir)
        except KeyError:
            continue  # a container's user often has no name
    return os.path.realpath(folder) in {os.path.realpath(each) for each in homes if each}


def _owner(folder: str) -> int:
    try:
        return os.stat(folder).st_uid  # noqa: PTH116 - text, as above
    except OSError:
        return os.geteuid()


def is_private(path: Path, root: Path) -> bool:
    """Whether a path below `root` lies in a .git, or behind a hidden name of a home folder: tokens and keys do.

    What CI and editors keep in a repository isn't private in a home folder either: a container's is often a checkout.
    """
    below = path.relative_to(root).parts
    if ".git" in map(str.lower, below):
        return True
    return bool(below) and below[0].startswith(".") and below[0] not in OF_CI and is_home(str(root))


@functools.lru_cache(maxsize=64)
def _tracks(outer: str, inner: str, _stamp: tuple[int, int]) -> bool:
    """Whether a repository tracks `inner`, a folder below it, as files or as a submodule."""
    from trainlaunch.repository.git import GitFailed, foreign_index

    if outer == inner:
        return False
    try:
        with foreign_index(Path(outer)) as index:
            return bool(index.listed(Path(outer), "--", os.path.relpath(inner, outer)))
    except GitFailed:
        return False


def _stamp(repository: str) -> tuple[int, int]:
    """Return what changes with a repository's index, 0 where that lies elsewhere."""
    try:
        index = os.stat(f"{repository}/.git/index")  # noqa: PTH116 - text, as above
    except OSError:
        return 0, 0
    return index.st_mtime_ns, index.st_size


def _current_folder() -> tuple[Path, ...]:
    try:
        return (Path.cwd(),)
    except FileNotFoundError:
        return ()  # it was deleted


def _absolute(path: Path) -> Path:
    return Path(os.path.normpath(path.absolute()))
