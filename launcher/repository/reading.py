"""Opens what a repository or a job names: regular files alone, and no more of them than the caller has use for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_OF_SHELLS = frozenset({"/dev/fd", "/proc/self/fd"})


def is_of_shell(path: Path) -> bool:
    """Whether a path is what a shell puts in the place of <(…), or stdin: it has its writer, and is as - is."""
    return path.parent.as_posix() in _OF_SHELLS or path.as_posix() in {"/dev/stdin", os.devnull}


def open_given(path: Path) -> BinaryIO:
    """Open a file that a user names, or what a shell opened for him. Raises OSError as open_regular."""
    return path.open("rb") if is_of_shell(path) else open_regular(path)


def open_regular(path: Path | str) -> BinaryIO:
    """Open a file to read its bytes. Raises OSError, also for what is not regular: a FIFO is not waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    mode = os.fstat(handle).st_mode
    if stat.S_ISDIR(mode):
        os.close(handle)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    file = os.fdopen(handle, "rb")
    if not stat.S_ISREG(mode):
        file.close()
        what = "a FIFO, which would be waited for" if stat.S_ISFIFO(mode) else "a device, which may have no end"
        raise OSError(errno.EINVAL, f"it is {what}", str(path))
    return file


def read_regular(path: Path, most: int) -> bytes:
    """Return what a file holds. Raises OSError as open_regular, and ValueError for one of over `most` bytes."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it is larger than {most} bytes")
    return data
