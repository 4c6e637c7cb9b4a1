"""The clock that a follower waits by, and times as engines and clusters write them.

What waits takes a Clock, so that a test's clock can run faster than the world.
"""

from __future__ import annotations

import datetime
import re
import time
from typing import NamedTuple

_FRACTION = re.compile(r"\.(\d+)")
SECOND = 10**9  # in nanoseconds


class Clock(NamedTuple):
    """A monotonic clock that runs `speed` times as fast as the world."""

    speed: float = 1.0

    def now(self) -> float:
        """Return this clock's seconds; only differences mean something."""
        return time.monotonic() * self.speed

    def real(self, seconds: float) -> float:
        """Return how long `seconds` of this clock last in the world, as `wait(timeout)` and `sleep` take it."""
        return seconds / self.speed


SYSTEM_CLOCK = Clock()


def seconds(timestamp: str) -> float:
    """Return an RFC 3339 time as seconds since the epoch; the year 1, an engine's never, gives 0."""
    return nanoseconds(timestamp) / SECOND


def nanoseconds(timestamp: str) -> int:
    """Return it as nanoseconds, which a float can't hold."""
    fraction = _FRACTION.search(timestamp)
    digits = fraction[1][:9] if fraction else ""
    text = _FRACTION.sub("", timestamp.replace("Z", "+00:00"))  # Python 3.10 reads three or six digits of a second only
    moment = datetime.datetime.fromisoformat(text)
    return int(moment.timestamp()) * SECOND + int(digits.ljust(9, "0")) if moment.year > 1 else 0


def rfc3339(moment: int) -> str:
    """Return nanoseconds since the epoch as an engine writes them, with all nine digits."""
    whole, rest = divmod(moment, SECOND)
    return f"{datetime.datetime.fromtimestamp(whole, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def epoch(moment: int) -> str:
    """Return nanoseconds since the epoch as decimal seconds."""
    whole, rest = divmod(moment, SECOND)
    return f"{whole}.{rest:09d}"


def clock(ago: float = 0.0) -> str:
    """Return the local time of day, or that of `ago` seconds before, as a sentence names it."""
    return time.strftime("%H:%M:%S", time.localtime(time.time() - ago))
