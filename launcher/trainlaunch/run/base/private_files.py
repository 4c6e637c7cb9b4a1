"""Files that only this user may have written: private folders, and records that tell of themselves that they are whole.

What a local run's files say is acted on (a command is run, a process is signalled), so a file of somebody else's, one
that others may write to, and one that was changed are all refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import zlib
from pathlib import Path
from typing import Any

PRIVATE = 0o700
MAX_BYTES = 1 << 20  # of a record; a job file has at most that
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class UnusableState(Exception):
    """A file or folder of state is not used; its text says why, as a clause."""


def state_root() -> Path:
    """Return the folder of all local runs of this user."""
    base, home = os.environ.get("XDG_STATE_HOME", ""), os.path.expanduser("~")  # noqa: PTH111 - home() raises
    if not base.startswith("/"):
        # A uid without a passwd entry keeps its ~; a shared /tmp would let others plant runs.
        base = f"{home if home.startswith('/') else ''}/.local/state"
    return Path(base) / "trainlaunch" / "runs"


def private_folder(path: Path) -> None:
    """Make a folder that only this user can open, and those above it that are missing, whatever the umask.

    One that is there is closed to others. Raises UnusableState where it is another user's, and OSError.
    """
    if not path.exists():
        if not path.parent.exists():
            private_folder(path.parent)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=PRIVATE)
            path.chmod(PRIVATE)  # a umask may have taken the owner's own rights
    refuse_alien(path)
    if path.stat().st_mode & 0o777 != PRIVATE:
        path.chmod(PRIVATE)


def refuse_alien(path: Path) -> None:
    """Raise UnusableState for a folder that is there and not this user's own."""
    try:
        found = path.stat()
    except OSError:
        return
    if found.st_uid != os.geteuid():
        raise UnusableState(f"{path} is uid {found.st_uid}'s and not yours (uid {os.geteuid()})")


def refuse_open(path: Path) -> None:
    """Raise UnusableState for the folder of a run that others could have changed."""
    refuse_alien(path)
    if path.is_symlink():
        raise UnusableState(f"{path} is a link")
    if path.stat().st_mode & _OTHERS_WRITE:
        raise UnusableState(f"others may write to {path}")


def open_own(path: Path) -> int:
    """Open a file for reading and return its descriptor; it never waits, as for a FIFO's writer.

    Raises UnusableState where it is another user's, no plain file, or one that others may write to; FileNotFoundError.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as refused:
        raise UnusableState(f"{path.name} can't be read: {refused.strerror or refused}") from refused
    found = os.fstat(file)
    why = ""
    if not stat.S_ISREG(found.st_mode):
        why = f"{path.name} is not a plain file"
    elif found.st_uid != os.geteuid():
        why = f"{path.name} is uid {found.st_uid}'s"
    elif found.st_mode & _OTHERS_WRITE:
        why = f"others may write to {path.name}"
    if why:
        os.close(file)
        raise UnusableState(why)
    return file


def sealed(record: dict[str, Any]) -> bytes:
    """Return a record as JSON with its own checksum, so that a changed bit is noticed."""
    return json.dumps({"checksum": _checksum(record), "record": record}).encode()


def read_record(path: Path) -> dict[str, Any] | None:
    """Return a record; None where there is no file, or nothing but blanks in it.

    Raises UnusableState where it is not ours or not as it was written.
    """
    try:
        file = open_own(path)
    except FileNotFoundError:
        return None
    with os.fdopen(file, "rb") as opened:
        data = opened.read(MAX_BYTES + 1)
    if not data.strip():
        return None
    try:
        found: Any = json.loads(data) if len(data) <= MAX_BYTES else None
        record: dict[str, Any] = found["record"]
        whole = found["checksum"] == _checksum(record)
    except (ValueError, KeyError, TypeError, RecursionError) as damage:
        raise UnusableState(f"{path.name} is damaged, or of another version of trainlaunch") from damage
    if not whole:
        raise UnusableState(f"{path.name} is damaged: its checksum is another's")
    return record


def replace_record(path: Path, record: dict[str, Any]) -> None:
    """Write a record whole, then put it in place. Raises OSError."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as opened:
        opened.write(sealed(record))
    fresh.chmod(0o600)
    fresh.replace(path)


def _checksum(record: Any) -> int:
    return zlib.crc32(json.dumps(record, sort_keys=True).encode())
