"""Who supervises a run on this host: at most one process makes its further attempts and ends it at its deadline.

The lock is an abstract Unix socket named after the run's id. It needs no folder, works between users, and the kernel
lets go of it when its holder dies. Whoever connects learns the holder's pid and user from the kernel, and from itself
since when it supervises the run, and whether it waits for the run's ttl_after_finished only.
"""

from __future__ import annotations

import contextlib
import json
import pwd
import re
import secrets
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

RUN_ID = re.compile(r"[0-9a-f]{8}")
_ANSWER_SECONDS = 2.0
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_MAX_BYTES = 4096


def new_run_id() -> str:
    """Return the id that all attempts of one `up` share: 8 hex digits."""
    return secrets.token_hex(4)


class Keeper(NamedTuple):
    """The process that supervises a run; `since` is seconds since the epoch, 0 where it doesn't say.

    `over`: no further attempt comes from it.
    """

    pid: int
    user: str
    since: float
    over: bool

    def __str__(self) -> str:
        since = time.strftime(" since %Y-%m-%d %H:%M:%S", time.localtime(self.since)) if self.since else ""
        return f"process {self.pid} of {self.user}{since}"


class RunLock:
    """The lock of one run, and the answers about its holder."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._since = time.time()
        self.over = False
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, contextlib.suppress(OSError):
                client.settimeout(_ANSWER_SECONDS)
                client.sendall(json.dumps({"since": self._since, "over": self.over}).encode())

    def release(self) -> None:
        """Let go of it."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # else the thread's accept holds it
        self._listener.close()


def hold(run: str) -> RunLock | None:
    """Take the lock of a run; None where another process of this host has it."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(_address(run))
    except OSError:
        listener.close()
        return None
    listener.listen()
    return RunLock(listener)


@contextlib.contextmanager
def holding(run: str) -> Iterator[RunLock]:
    """Hold the lock of a run that nobody else can know yet."""
    held = hold(run)
    if held is None:
        raise RuntimeError(f"the id {run} of a new run is taken")
    try:
        yield held
    finally:
        held.release()


def keeper_of(run: str) -> Keeper | None:
    """Return who supervises a run on this host; None where nobody does, or for a run without an id of ours."""
    if not RUN_ID.fullmatch(run):
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(_ANSWER_SECONDS)
        try:
            asking.connect(_address(run))
            raw = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError:
            return None
        pid, uid, _ = _CREDENTIALS.unpack(raw)
        return Keeper(pid, _user(uid), *_told(asking))


def _told(asking: socket.socket) -> tuple[float, bool]:
    """Return since when a supervisor runs, and whether it only waits for the ttl; it may be busy or another program."""
    try:
        answer = json.loads(asking.recv(_MAX_BYTES))
        return float(answer["since"]), answer["over"] is True
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0.0, False


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _address(run: str) -> str:
    return f"\0trainlaunch-keeper-{run}"
