"""Reads the folder of a mount of type code, as a ConfigMap can hold it: regular files, small, by their paths."""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from trainlaunch.repository.git import GitFailed, git_files
from trainlaunch.repository.root import is_private
from trainlaunch.sanitize import shorten
from trainlaunch.units import KIB, counted, human_size

MAX_BYTES = 900 * KIB  # the API server takes 1 MiB with all that stands around the files
MAX_FILES = 2000  # each stands in the pod's own object too, by key and path
_LEFT_OUT = frozenset({".git", "__pycache__"})  # of a folder that git doesn't know; each run would change it
_ELSEWHERE = "build the code into the image, or copy it to a PVC and mount that (type: pvc)"
WHOLE = "write the folder that holds the job's code"


class CodeFile(NamedTuple):
    """One file of a job's code: its `path` below the folder, with slashes, its bytes, and whether it is executable."""

    path: str
    data: bytes
    executable: bool


class CodeFolder(NamedTuple):
    """The files of a mount of type code, by path, as they are taken to where no folder of this host is.

    `by_git` says that they are those that git tracks; `untracked` are the paths that it neither tracks nor ignores.
    """

    files: tuple[CodeFile, ...]
    by_git: bool
    untracked: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(len(each.data) for each in self.files)

    @property
    def digest(self) -> str:
        """The SHA-256 of paths, executable bits and contents, in hex digits."""
        made = hashlib.sha256()
        for each in self.files:
            made.update(repr((each.path, each.executable, len(each.data))).encode())
            made.update(each.data)
        return made.hexdigest()


class CodeRefused(Exception):
    """A folder that can't be taken along: what is so, what to do, and why."""

    def __init__(self, message: str, fix: str, why: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.why = why


def read_code_folder(source: str, folder: Path) -> CodeFolder:
    """Return the files of `folder`, which the job file calls `source`: those that git tracks, else all.

    The same files give the same value on every machine. Raises CodeRefused.
    """
    try:
        if not folder.is_dir():
            there = "is not a folder" if folder.exists() else "does not exist"
            raise CodeRefused(f"{shorten(source)} {there}", WHOLE)
        known = git_files(folder)
        files = _Files(source, folder, known.tracked if known else tuple(_walked(folder))).read()
    except GitFailed as cause:
        why = "a code mount takes the files that git tracks, so that every checkout gives the same"
        raise CodeRefused(
            f"git can't tell which files of {shorten(source)} it tracks: {cause}",
            f"make `git -C {shlex.quote(str(folder))} ls-files` work here",
            why,
        ) from cause
    except OSError as cause:
        where = shorten(str(cause.filename or source))
        raise CodeRefused(f"{where} can't be read: {cause.strerror or cause}", "make it readable for you") from cause
    if not files and known:
        why = "a code mount takes the files that git tracks"
        raise CodeRefused(f"git tracks no file of {shorten(source)}", f"run `git add {shorten(source)}`", why)
    if not files:
        raise CodeRefused(f"{shorten(source)} holds no file", WHOLE)
    return CodeFolder(files, known is not None, known.untracked if known else ())


def _walked(folder: Path) -> Iterator[str]:
    def closed(cause: OSError) -> None:  # os.walk itself leaves such a folder out
        raise cause

    for parent, folders, files in os.walk(folder, onerror=closed):
        links = [each for each in folders if Path(parent, each).is_symlink()]
        kept = [each for each in folders if each not in _LEFT_OUT]
        folders[:] = [each for each in kept if not is_private(Path(parent, each), folder)]
        paths = (Path(parent, each) for each in (*files, *links))
        yield from (str(each.relative_to(folder)) for each in paths if not is_private(each, folder))


class _Files:
    """Reads listed files below a folder; a link stands for what it leads to, which must be below the folder too."""

    def __init__(self, source: str, folder: Path, paths: tuple[str, ...]) -> None:
        self._source = source
        self._root = folder.resolve()
        self._paths = paths

    def read(self) -> tuple[CodeFile, ...]:
        """Return the files in the order of their paths. Raises CodeRefused and OSError."""
        found: dict[str, Path] = {}
        for path in self._paths:
            found.update(self._expanded(path, path, frozenset()))
        for path in found:
            self._check_name(path)
        self._check_size({path: place.stat().st_size for path, place in found.items()})
        files = tuple(_read(path, found[path]) for path in sorted(found))
        self._check_size({each.path: len(each.data) for each in files})  # one may have grown
        return files

    def _expanded(self, path: str, listed: str, through: frozenset[str]) -> Iterator[tuple[str, Path]]:
        """Yield (path, place on this host) of a listed file, or of those below the folder that a link leads to."""
        place = self._root / listed
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            return  # deleted, and git still tracks it
        if not place.parent.resolve().is_relative_to(self._root):
            raise self._refused(path, "lies behind a link to a folder elsewhere")
        if stat.S_ISLNK(mode):
            target = Path(os.path.realpath(place))  # which doesn't raise for a link to itself
            if not target.is_relative_to(self._root) or is_private(target, self._root) or not target.exists():
                raise self._refused(path, f"is a link to {shorten(str(place.readlink()))}")
            if target.is_dir():
                yield from self._linked(path, listed, target, through)
                return
            place, mode = target, target.stat().st_mode
        if stat.S_ISDIR(mode):
            raise CodeRefused(
                self._at(path, "is a git repository of its own that is not checked out"),
                f"run `git submodule update --init {shorten(path)}`",
            )
        if not stat.S_ISREG(mode):
            raise self._refused(path, "is not a regular file")
        yield path, place

    def _linked(self, path: str, listed: str, target: Path, through: frozenset[str]) -> Iterator[tuple[str, Path]]:
        if listed in through or (self._root / listed).is_relative_to(target):
            raise self._refused(path, "is a link to a folder that it is in itself")
        below = f"{target.relative_to(self._root)}{os.sep}"
        for each in self._paths:
            if each.startswith(below):
                yield from self._expanded(f"{path}{os.sep}{each.removeprefix(below)}", each, through | {listed})

    def _check_name(self, path: str) -> None:
        if path.startswith(".."):
            raise self._refused(path, "has a name that starts with two dots, which the kubelet keeps for itself")
        if any("\ud800" <= each <= "\udfff" for each in path):
            raise self._refused(path, "has a name that is not UTF-8")

    def _check_size(self, sizes: dict[str, int]) -> None:
        total = sum(sizes.values())
        if total <= MAX_BYTES and len(sizes) <= MAX_FILES:
            return
        largest = sorted(sizes, key=lambda path: (-sizes[path], path))[:3]
        named = ", ".join(f"{shorten(each)} {human_size(sizes[each])}" for each in largest)
        most = f"{human_size(MAX_BYTES)} in {MAX_FILES} files"
        raise CodeRefused(
            f"{shorten(self._source)} has {human_size(total)} in {counted(len(sizes), 'file')}, and a ConfigMap "
            f"holds {most}",
            _ELSEWHERE,
            f"the code goes into a ConfigMap, and a cluster keeps none over 1 MiB; the largest files are {named}",
        )

    def _refused(self, path: str, what: str) -> CodeRefused:
        return CodeRefused(
            self._at(path, what),
            "put a copy of the file in its place, stop tracking it, or mount another folder",
            "a ConfigMap holds files of this one folder and nothing else",
        )

    def _at(self, path: str, what: str) -> str:
        return f"{shorten(path)} in {shorten(self._source)} {what}"


def _read(path: str, place: Path) -> CodeFile:
    with place.open("rb") as file:
        executable = bool(os.fstat(file.fileno()).st_mode & stat.S_IXUSR)
        return CodeFile(path, file.read(MAX_BYTES + 1), executable)
