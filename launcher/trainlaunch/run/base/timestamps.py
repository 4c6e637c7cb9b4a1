"""Times as engines and clusters write them."""

from __future__ import annotations

import datetime
import re

_FRACTION = re.compile(r"\.(\d+)")
SECOND = 10**9  # in nanoseconds


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
