"""Health checks that no engine makes: on a host nobody asks, and Podman leaves it to timers that may not come."""

from __future__ import annotations

import time
from collections.abc import Callable


class OwnChecks:
    """Judges a run's checks as an engine does: one each interval, and unhealthy after some failures in a row."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next: dict[str, float] = {}
        self._failures: dict[str, int] = {}

    def due(self, run: str, interval: float) -> bool:
        """Return whether `interval` seconds are over since the last check of a run; the next is due after as many."""
        now = self._clock()
        if now < self._next.get(run, 0.0):
            return False
        self._next[run] = now + interval
        return True

    def unhealthy(self, run: str, *, failed: bool, retries: int) -> bool:
        """Take the result of a check; return whether `retries` have failed one after another."""
        self._failures[run] = self._failures.get(run, 0) + 1 if failed else 0
        return self._failures[run] >= retries
