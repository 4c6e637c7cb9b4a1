"""What git tracks in a folder, and what it neither tracks nor ignores, asked without the repository's own settings."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_SECONDS = 60
_SETTINGS = (
    *("core.fsmonitor=false", "core.untrackedCache=false", "core.hooksPath=/dev/null", "protocol.allow=never"),
    *("index.sparse=true", "core.sparseCheckout=true", "core.sparseCheckoutCone=true"),  # else git wants the trees
)
_USAGE = 129  # git's exit code for an option that it doesn't know
_FILE_BYTES = 4096  # more than any gitfile has

_SUBMODULE = b"160000"


class GitFailed(Exception):
    """Git can't be asked, though the folder is in a repository; the text says why."""


class ForeignIndex(NamedTuple):
    """The index of a working tree, read by a git directory of ours at `git_dir`."""

    program: str
    git_dir: Path
    work_tree: Path

    def listed(self, folder: Path, *words: str) -> tuple[bytes, ...]:
        """Return what `git ls-files WORDS` lists in a folder of the working tree. Raises GitFailed."""
        # A sparse index is listed as it is: the trees that it names are not here, and their files not checked out.
        done = self._run(folder, "ls-files", "-z", "--sparse", *words)
        if done.returncode == _USAGE:  # git before 2.36 has no sparse index and no such option
            done = self._run(folder, "ls-files", "-z", *words)
        if done.stderr.startswith(b"error:"):  # git would make a whole index sparse, and has no objects for that
            done = self._run(folder, "-c", "index.sparse=false", "ls-files", "-z", *words)
        said = " ".join(os.fsdecode(done.stderr).split())
        if said.startswith("error:"):  # exit code 0, and what is missing is left out
            raise GitFailed(f"{said}; where files lie outside of a sparse checkout, run `git sparse-checkout disable`")
        if done.returncode:
            raise GitFailed(said or f"git ls-files ends with {done.returncode}")
        return tuple(each for each in done.stdout.split(b"\0") if each)

    def _run(self, folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
        argv = (f"--git-dir={self.git_dir}", f"--work-tree={self.work_tree}", "--literal-pathspecs", *words)
        return _git(self.program, folder, *argv)


@contextmanager
def foreign_index(work_tree: Path) -> Iterator[ForeignIndex]:
    """Give what reads the index of a working tree. Raises GitFailed."""
    program = shutil.which("git")
    if program is None:
        raise GitFailed("git is not installed here")
    theirs = _git_directory(work_tree, program)
    with tempfile.TemporaryDirectory(prefix="trainlaunch-git-") as made:
        ours = Path(made)
        for each in ("objects", "refs", "info"):
            (ours / each).mkdir()
        (ours / "HEAD").write_text("ref: refs/heads/main\n")
        (ours / "config").write_text(_config(_setting(program, _common(theirs), "extensions.objectFormat")))
        for index in (theirs / "index", *theirs.glob("sharedindex.*")):  # a split index has its base beside it
            _link(index, ours / index.name)
        _link(_common(theirs) / "info" / "exclude", ours / "info" / "exclude")
        _link(theirs / "info" / "sparse-checkout", ours / "info" / "sparse-checkout")
        yield ForeignIndex(program, ours, work_tree)


def is_worktree_of(work_tree: Path, repository: Path) -> bool:
    """Whether a working tree is another one of a repository that has its `.git` as a folder."""
    try:
        theirs = _git_directory(work_tree, shutil.which("git") or "git")
    except GitFailed:
        return False
    return Path(os.path.realpath(theirs)).is_relative_to(os.path.realpath(repository / ".git" / "worktrees"))


def _git_directory(work_tree: Path, program: str) -> Path:
    """Return the git directory of a working tree. Raises GitFailed where its `.git` is none.

    A file `.git` of a worktree or submodule counts where what it points at points back: else it reads elsewhere.
    """
    dot = work_tree / ".git"
    if dot.is_symlink():
        raise GitFailed(f"{dot} is a link")
    if dot.is_dir():
        if not (dot / "HEAD").is_file() or not (dot / "objects").is_dir():
            raise GitFailed(f"{dot} is not a git directory")
        return dot
    pointed = _first_line(dot)
    if not pointed.startswith("gitdir: "):
        raise GitFailed(f"{dot} is not a git directory")
    theirs = Path(os.path.normpath(work_tree / pointed.removeprefix("gitdir: ")))
    if not _points_back(theirs, work_tree, program):
        raise GitFailed(f"{dot} points at {theirs}, which is not the git directory of {work_tree}")
    return theirs


def _points_back(theirs: Path, work_tree: Path, program: str) -> bool:
    """Return whether a git directory elsewhere is a worktree's or a submodule's of just this working tree."""
    backlink = _first_line(theirs / "gitdir")
    if backlink:
        return _is_same(theirs / backlink, work_tree / ".git")
    stated = _setting(program, theirs, "core.worktree")
    return bool(stated) and _is_same(theirs / stated, work_tree)


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _common(theirs: Path) -> Path:
    """Return the git directory that all worktrees share; it has the configuration."""
    stated = _first_line(theirs / "commondir") if theirs.name != ".git" else ""
    return Path(os.path.normpath(theirs / stated))


def _config(object_format: str) -> str:
    named = "[extensions]\nobjectFormat = sha256\n" if object_format == "sha256" else ""
    return f"[core]\nrepositoryformatversion = 1\nbare = false\n{named}"


def _setting(program: str, theirs: Path, name: str) -> str:
    """Return one value of a repository's configuration, read as a file: nothing in it is followed or run."""
    for file in filter(_is_regular, (theirs / "config.worktree", theirs / "config")):
        done = _git(program, Path("/"), "config", f"--file={file}", "--no-includes", "--get", name)
        if done.stdout:
            return os.fsdecode(done.stdout).strip()
    return ""


def _git(program: str, folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    env = {
        "PATH": os.pathsep.join((str(Path(program).parent), os.defpath)),
        "HOME": os.path.expanduser("~"),  # noqa: PTH111 - a user without a name has none, which a Path raises for
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
    }
    argv = [program, *(word for each in _SETTINGS for word in ("-c", each)), *words]
    try:
        return subprocess.run(
            argv, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as cause:
        raise GitFailed(str(cause)) from cause


def _link(theirs: Path, ours: Path) -> None:
    """Let a file of our git directory be one of theirs. Raises GitFailed for what is there and no regular file."""
    if _is_regular(theirs):
        ours.symlink_to(theirs)
    elif os.path.lexists(theirs):
        raise GitFailed(f"{theirs} is not a regular file")


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _first_line(path: Path) -> str:
    """Return the first line of one of git's small files, nothing where there is none."""
    if not _is_regular(path):
        return ""
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.read(_FILE_BYTES).partition(b"\n")[0]).strip()
    except OSError:
        return ""


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
