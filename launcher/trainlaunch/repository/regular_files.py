"""Opens what a repository or a job names: regular files alone, and no more of them than the caller has use for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_ENDLESS = {stat.S_IFIFO: "a FIFO, which would be waited for", stat.S_IFSOCK: "a socket, which has no text"}
_OF_SHELLS = frozenset({"/dev/fd", "/proc/self/fd"})


def is_of_shell(path: Path) -> bool:
    """Whether a path is what a shell puts in the place of <(…), or stdin: it has its writer, and is as - is."""
    return path.parent.as_posix() in _OF_SHELLS or path.as_posix() in {"/dev/stdin", os.devnull}


def open_given(path: Path) -> BinaryIO:
    """Open a file that a user names, or what a shell opened for him. Raises OSError as open_regular."""
    return path.open("rb") if is_of_shell(path) else open_regular(path)


def open_regular(path: Path | str) -> BinaryIO:
    """Open a file to read its bytes. Raises OSError, also for what is not regular: a FIFO is not waited for."""
    _refuse_irregular(os.stat(path), path)  # noqa: PTH116 - to open a device may already do something to it
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        _refuse_irregular(os.fstat(handle), path)  # another file may have come into its place
    except OSError:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def _refuse_irregular(status: os.stat_result, path: Path | str) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    if kind != stat.S_IFREG:
        raise OSError(errno.EINVAL, f"it is {_ENDLESS.get(kind, 'a device, which may have no end')}", str(path))


def read_regular(path: Path, most: int) -> bytes:
    """Return what a file holds. Raises OSError as open_regular, and ValueError for one of over `most` bytes."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it is larger than {most} bytes")
    return data
