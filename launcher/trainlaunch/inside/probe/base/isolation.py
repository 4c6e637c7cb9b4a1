"""Runs the script's own code apart for a check: in a forked copy of this process, or with a limit of time.

What a copy reads, opens, draws or breaks stays there.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

in_copy = False  # whether this process is such a copy


def run_in_fork(function: Callable[[], Any], seconds: float) -> Any:
    """Return what `function` returns, as JSON reads it.

    Raises TimeoutError after `seconds`, RuntimeError with the text of what it raised.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # or the copy's workers would write it once more
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _in_copy(function, write, seconds)
    os.close(write)
    try:
        answer = json.loads(_line(read, seconds))
    finally:
        os.close(read)
        _end(pid)
    if "raised" in answer:
        raise RuntimeError(answer["raised"])
    return answer["value"]


def _in_copy(function: Callable[[], Any], write: int, seconds: float) -> NoReturn:
    global in_copy  # noqa: PLW0603 - a process is one for all of its life
    in_copy = True
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(seconds) + 5)  # for a copy that outlives its parent
        _die_first()
        sys.modules["torch"].set_num_threads(1)  # threads of OpenMP don't survive a fork
        warnings.simplefilter("ignore")  # about more workers than CPUs, which are not the script's
        answer = {"value": function()}
    except BaseException as problem:  # whatever the script's own code raises
        answer = {"raised": f"{type(problem).__name__}: {problem}"}
    data = (json.dumps(answer, default=str) + "\n").encode()
    try:
        while data:
            data = data[os.write(write, data) :]
    finally:
        os._exit(0)


def _die_first() -> None:
    """Let the kernel, where memory runs out, kill this copy and its workers rather than the script's process."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


def _line(read: int, seconds: float) -> bytes:
    """Return what the copy writes up to its newline; its workers hold the pipe too, so it may never end."""
    deadline, parts = time.monotonic() + seconds, []  # type: float, list[bytes]
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([read], [], [], left)[0]:
            raise TimeoutError(f"no answer after {seconds:g} s")
        part = os.read(read, 65536)
        if not part:
            raise RuntimeError("the copy of the process died")
        parts.append(part)
        if part.endswith(b"\n"):
            return b"".join(parts)


def _end(pid: int) -> None:
    """End the copy; its workers end by themselves within seconds, as torch's do whose parent died."""
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        return


class CheckTimeout(BaseException):
    """The time is over; no Exception, because scripts catch those."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise Late in this block after `seconds`, and each second again; without limit outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: Any) -> None:
        raise CheckTimeout

    before = signal.signal(signal.SIGALRM, ring)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # the script's own, if it has one
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)
