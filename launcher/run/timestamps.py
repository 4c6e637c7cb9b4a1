"""Times as engines and clusters write them."""

from __future__ import annotations

import datetime
import re

_FRACTION = re.compile(r"\.(\d{6})\d*")


def seconds(timestamp: str) -> float:
    """Return an RFC 3339 time as seconds since the epoch; the year 1, an engine's never, gives 0."""
    text = _FRACTION.sub(r".\1", timestamp.replace("Z", "+00:00"))
    whole, dot, rest = text.partition(".")
    if dot:  # Python 3.10 reads three or six digits of a second only
        digits = re.match(r"\d+", rest)
        fraction = digits.group() if digits else ""
        text = f"{whole}.{fraction.ljust(6, '0')}{rest[len(fraction) :]}"
    moment = datetime.datetime.fromisoformat(text)
    return moment.timestamp() if moment.year > 1 else 0.0
