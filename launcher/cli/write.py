"""Files written whole or not at all: a temporary file beside the target, then a rename."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from launcher.diagnostics import Diagnostic
from launcher.errors import UsageError

_SOME = 8192  # bytes: more than most locks


def write_files(
    folder: Path, files: Mapping[str, str], *, overwrite: bool, replaceable: Collection[str] = ()
) -> list[Path]:
    """Write each text under its name in `folder` and return the paths; all are staged before the first is renamed.

    Files with names in `replaceable` are replaced without `overwrite`.

    Raises UsageError, with nothing written, where a file differs and `overwrite` is not given, and where the folder
    can't be written.
    """
    staged: dict[Path, Path] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept = [] if overwrite else [name for name in files if name not in replaceable]
        refused = [folder / name for name in kept if _differs(folder / name, files[name])]
        if refused:
            raise UsageError([_would_overwrite(path) for path in refused])
        for name, text in files.items():
            staged[folder / name] = _stage(folder, text)
        for path, temporary in staged.items():
            temporary.replace(path)
    except OSError as cause:
        fix = "name a folder that you can write to, on a disk with space"
        what = folder if len(files) > 1 or not folder.is_dir() else folder / next(iter(files), "")
        raise UsageError([_cannot_write(what, cause, fix)]) from cause
    finally:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)
    return list(staged)


def write_over(path: Path, text: str, *, overwrite: bool) -> bool:
    """Write one of many texts to `path` whole or not at all, with its folders; return whether that changed anything.

    Raises UsageError, with nothing written, where a file differs and `overwrite` is not given, and where it can't be.
    """
    try:
        if path.exists():
            if not _differs(path, text):
                return False
            if not overwrite:
                raise UsageError([_would_overwrite(path)])
        try:
            temporary = _stage(path.parent, text, lasting=False)
        except FileNotFoundError:  # only the first of many texts meets a folder that is not there
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = _stage(path.parent, text, lasting=False)
        temporary.replace(path)
    except OSError as cause:
        raise UsageError([_cannot_write(path, cause, "name a folder that you can write to, with space")]) from cause
    return True


def replace_file(path: Path, text: str) -> None:
    """Write `text` to `path` whole or not at all, with the mode that the file there has; a link stays one.

    Raises UsageError where it can't be written.
    """
    target = path.resolve()
    try:
        temporary = _stage(target.parent, text)
        try:
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o7777)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as cause:
        raise UsageError([_cannot_write(path, cause, _let_write(target))]) from cause


def refuse_unwritable(path: Path) -> None:
    """Raise UsageError where `replace_file` could not write some KiB to `path` now; nothing is left of the attempt."""
    target = path.resolve()
    try:
        _stage(target.parent, " " * _SOME, lasting=False).unlink()
    except OSError as cause:
        raise UsageError([_cannot_write(path, cause, _let_write(target))]) from cause


def _let_write(target: Path) -> str:
    return f"let this user write to {target.parent}, on a disk with space"


def _differs(path: Path, text: str) -> bool:
    return path.exists() and path.read_bytes() != text.encode()


def _stage(folder: Path, text: str, *, lasting: bool = True) -> Path:
    """Return a new file with the text; unless `lasting`, a machine that loses its power may lose it."""
    import tempfile  # few results are files

    handle, name = tempfile.mkstemp(dir=folder, prefix=".trainlaunch-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, 0o644)
            file.write(text.encode())
            file.flush()
            if lasting:
                os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


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
