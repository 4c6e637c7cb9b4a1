"""Opens what a repository or a job names: regular files alone, and no more of them than the caller has use for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: Path | str) -> BinaryIO:
    """Open a file to read its bytes. Raises OSError, also for what is not regular: a FIFO is not waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    file = os.fdopen(handle, "rb")
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return file


def read_regular(path: Path, most: int) -> bytes:
    """Return what a file holds. Raises OSError as open_regular, and ValueError for one of over `most` bytes."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it is larger than {most} bytes")
    return data
