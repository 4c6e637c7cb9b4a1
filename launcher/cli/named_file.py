"""Opens a file that the command line names, without waiting for what may never come."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from launcher.diagnostics import Diagnostic
from launcher.errors import UsageError

_OF_SHELLS = frozenset({"/dev/fd", "/proc/self/fd"})  # where <(…) lies, which has its writer already

_FIX = "name a file that is there and that this user can read, or - for stdin"


def open_named(name: str, what: str) -> BinaryIO:
    """Return a file, open for reading; `what` calls it in errors, like `--log FILE`.

    Raises UsageError where it can't be opened, and for what may have no end: a FIFO that nobody may write to, a device.
    """
    path = Path(name)
    try:
        refused = _endless(path, path.stat())  # to open a device or a FIFO may already do something to it
        if refused is None:
            opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            refused = _endless(path, os.fstat(opened))  # another file may have come into its place
            if refused is None:
                os.set_blocking(opened, True)
                return os.fdopen(opened, "rb")
            os.close(opened)
    except (OSError, ValueError) as cause:
        raise unreadable(what, cause) from cause
    raise UsageError([Diagnostic("TL118", f"{what} {refused}", _FIX)])


def unreadable(what: str, cause: OSError | ValueError) -> UsageError:
    """Return the error for a file that can't be opened, or read further."""
    reason = getattr(cause, "strerror", None) or cause
    return UsageError([Diagnostic("TL118", f"{what} can't be read: {reason}", _FIX)])


def _endless(path: Path, status: os.stat_result) -> str | None:
    """Return why a file is not read, None for one that is."""
    if stat.S_ISDIR(status.st_mode):
        return "is a folder"
    if path.parent.as_posix() in _OF_SHELLS or path.as_posix() in {"/dev/stdin", os.devnull}:
        return None  # as - is
    if stat.S_ISFIFO(status.st_mode):
        return "is a FIFO, which would be waited for"
    is_device = stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)
    return "is a device, which may have no end" if is_device else None
