"""Files written whole or not at all: a temporary file beside the target, then a rename."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError
from trainlaunch.repository.regular_files import read_regular

_TEMPORARY = r"\.trainlaunch-[a-z0-9_]{8}\.tmp"
_SOME = 8192  # bytes: more than most locks


def write_files(
    folder: Path, files: Mapping[str, str], *, overwrite: bool, replaceable: Collection[str] = ()
) -> list[Path]:
    """Write each text under its name in `folder` and return the paths; all are staged before the first is renamed.

    Files with names in `replaceable` are replaced without `overwrite`.

    Raises UsageError, with nothing written, where a file differs and `overwrite` is not given, and where the folder
    can't be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept = [] if overwrite else [name for name in files if name not in replaceable]
        refused = [folder / name for name in kept if _differs(folder / name, files[name])]
        if refused:
            raise UsageError([_would_overwrite(path) for path in refused])
        remove_temporaries(folder)
        with ExitStack() as stack:
            staged = {folder / name: stack.enter_context(_staged(folder, text)) for name, text in files.items()}
            for path, temporary in staged.items():
                temporary.replace(path)
    except OSError as cause:
        fix = "name a folder that you can write to, on a disk with space"
        what = folder if len(files) > 1 or not folder.is_dir() else folder / next(iter(files), "")
        raise UsageError([_cannot_write(what, cause, fix)]) from cause
    return list(staged)


def write_over(path: Path, text: str, *, overwrite: bool) -> bool:
    """Write one of many texts to `path` whole or not at all, with its folders; return whether that changed anything.

    Raises UsageError, with nothing written, where a file differs and `overwrite` is not given, and where it can't be.
    """
    try:
        if os.path.lexists(path):
            if not _differs(path, text):
                return False
            if not overwrite:
                raise UsageError([_would_overwrite(path)])
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
        with _staged(path.parent, text, lasting=False) as temporary:
            temporary.replace(path)
    except OSError as cause:
        raise UsageError([_cannot_write(path, cause, "name a folder that you can write to, with space")]) from cause
    return True


def replace_file(path: Path, text: str) -> None:
    """Write `text` to `path` whole or not at all, with the mode that the file there has; a link to one stays a link.

    Raises UsageError where it can't be written.
    """
    target = Path(os.path.realpath(path))
    try:
        remove_temporaries(target.parent)
        with _staged(target.parent, text) as temporary:
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o7777)
            temporary.replace(target)
    except OSError as cause:
        raise UsageError([_cannot_write(path, cause, _let_write(target))]) from cause


def refuse_unwritable(path: Path) -> None:
    """Raise UsageError where `replace_file` could not write some KiB to `path` now; nothing is left of the attempt."""
    target = Path(os.path.realpath(path))
    try:
        with _staged(target.parent, " " * _SOME, lasting=False):
            pass
    except OSError as cause:
        raise UsageError([_cannot_write(path, cause, _let_write(target))]) from cause


def _let_write(target: Path) -> str:
    return f"let this user write to {target.parent}, on a disk with space"


def _differs(path: Path, text: str) -> bool:
    data = text.encode()
    try:
        return os.path.lexists(path) and read_regular(path, len(data)) != data
    except (FileNotFoundError, ValueError):
        return True  # a link to nowhere, or a larger file


def remove_temporaries(folder: Path) -> None:
    """Delete the temporary files that killed writers of this user left in a folder; a living writer's are locked."""
    with suppress(OSError), os.scandir(folder) as entries:
        for path in [Path(each) for each in entries if re.fullmatch(_TEMPORARY, each.name)]:
            with suppress(OSError), os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                status = os.fstat(file.fileno())
                if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    path.unlink()


@contextmanager
def _staged(folder: Path, text: str, *, lasting: bool = True) -> Iterator[Path]:
    """Yield a new file with the text, which is deleted afterwards unless it got another name.

    Unless `lasting`, a machine that loses its power may lose it.
    """
    file, temporary = _locked_file(folder)
    try:
        with file:
            os.fchmod(file.fileno(), 0o644)
            file.write(text.encode())
            file.flush()
            if lasting:
                os.fsync(file.fileno())
            yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _locked_file(folder: Path) -> tuple[BinaryIO, Path]:
    """Return a new file, locked while it is open, so that it is told from those that killed writers left."""
    import tempfile

    while True:
        handle, name = tempfile.mkstemp(dir=folder, prefix=".trainlaunch-", suffix=".tmp")
        file = os.fdopen(handle, "wb")
        with suppress(OSError):  # a file system without locks, where none is ever taken for left
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return file, Path(name)
        file.close()  # it was taken for left before it was locked


def _would_overwrite(path: Path) -> Diagnostic:
    return Diagnostic(
        "TL115",
        f"{path} exists and differs",
        "add --overwrite, or write to another folder",
        why="it may hold changes made by hand",
    )


def _cannot_write(path: Path, cause: OSError, fix: str) -> Diagnostic:
    reason = (
        "it is not a folder" if isinstance(cause, (FileExistsError, NotADirectoryError)) else cause.strerror or cause
    )
    return Diagnostic("TL116", f"{path} can't be written: {reason}", fix, why="nothing was written")
