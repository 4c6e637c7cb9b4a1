"""Opens what a repository holds: regular files alone, and no more of them than the caller has use for."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_regular(path: Path, most: int) -> bytes:
    """Return what a file holds. Raises OSError, and ValueError for one that is not regular or has over `most` bytes.

    A FIFO is not waited for, and a device not read.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with open(handle, "rb") as file:  # noqa: PTH123 - a descriptor
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is not a regular file")
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it is larger than {most} bytes")
    return data
