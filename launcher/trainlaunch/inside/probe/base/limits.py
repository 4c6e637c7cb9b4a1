"""A limit of time on what the script's own code does for a check."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


class Late(BaseException):
    """The time is over; no Exception, because scripts catch those."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise Late in this block after `seconds`, and each second again; without limit outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: Any) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, ring)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # the script's own, if it has one
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)
