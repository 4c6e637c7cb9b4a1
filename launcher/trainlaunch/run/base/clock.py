"""The time that a follower waits by. What waits takes a Clock, so that a test's clock can run faster than the world."""

from __future__ import annotations

import time
from typing import NamedTuple


class Clock(NamedTuple):
    """A monotonic clock that runs `speed` times as fast as the world."""

    speed: float = 1.0

    def now(self) -> float:
        """Return this clock's seconds; only differences mean something."""
        return time.monotonic() * self.speed

    def real(self, seconds: float) -> float:
        """Return how long `seconds` of this clock last in the world, as `wait(timeout)` and `sleep` take it."""
        return seconds / self.speed


WORLD = Clock()
