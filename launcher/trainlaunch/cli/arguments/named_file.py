"""Opens a file that the command line names, without waiting for what may never come."""

from __future__ import annotations

import errno
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError
from trainlaunch.repository.regular_files import is_of_shell, open_given

STDIN = frozenset({"-", "/dev/stdin"})
_FIX = "name a file that is there and that this user can read, or - for stdin"


def is_handed(name: str) -> bool:
    """Whether a name stands for what the caller's shell opened, stdin included, and not for a file."""
    return name in STDIN or is_of_shell(Path(name))


def open_named(name: str, what: str) -> AbstractContextManager[BinaryIO]:
    """Return a file, or what a shell opened, to read its bytes; `what` calls it in errors, like `--log FILE`.

    Raises UsageError where it can't be opened, and for what may have no end: a FIFO that nobody may write to, a device.
    """
    try:
        return nullcontext(_stdin()) if name in STDIN else open_given(Path(name))
    except (OSError, ValueError) as cause:
        raise unreadable(what, cause) from cause


def _stdin() -> BinaryIO:
    if sys.stdin is None:  # Python has none where the caller closed it, as some service managers do
        raise OSError(errno.EBADF, "it is closed")
    return sys.stdin.buffer


def unreadable(what: str, cause: Exception) -> UsageError:
    """Return the error for a file that can't be opened, or read further."""
    reason = getattr(cause, "strerror", None) or cause
    return UsageError([Diagnostic("TL118", f"{what} can't be read: {reason}", _FIX)])
