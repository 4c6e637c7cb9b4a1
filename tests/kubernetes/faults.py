"""What can go wrong between a client and its cluster, on purpose: each fault applies to the next matching requests."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from tests.kubernetes.statuses import ApiError


@dataclass(slots=True)
class Fault:
    """Applies to `times` requests of a verb (`*`: any) and a resource (`pods`, `pods/log`; `*`: any).

    Seconds are the cluster's.

    answer      this error instead of the real answer
    after       in a stream, bytes (logs) or events (watches) that still arrive before the fault
    reset       a stream ends with a connection reset, a watch in the middle of an event
    ends        a stream ends cleanly though there is more
    gone        a watch gets the event ERROR with 410 Expired
    slow        seconds between single bytes of a stream
    stall       a stream sends nothing more for so many seconds, and stays open
    """

    verb: str
    resource: str = "*"
    times: int = 1
    answer: ApiError | None = None
    after: int = 0
    reset: bool = False
    ends: bool = False
    gone: bool = False
    slow: float = 0.0
    stall: float = 0.0
    seen: int = 0

    def fits(self, verb: str, resource: str) -> bool:
        """Return whether it applies to such a request."""
        return self.verb in ("*", verb) and self.resource in ("*", resource)


class Faults:
    """The faults that are still to come, in the order in which they were added."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._coming: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        """Add one; its `seen` then counts the requests that it hit."""
        with self._lock:
            self._coming.append(fault)
        return fault

    def clear(self) -> None:
        """Forget those that have not come."""
        with self._lock:
            self._coming.clear()

    def take(self, verb: str, resource: str) -> Fault | None:
        """Return the fault of a request, or None."""
        with self._lock:
            for fault in self._coming:
                if fault.seen < fault.times and fault.fits(verb, resource):
                    fault.seen += 1
                    return fault
        return None
