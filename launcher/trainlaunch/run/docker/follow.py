"""Follows what an engine sends of a container over a connection that may fall silent and stay open."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

from trainlaunch.errors import TargetUnavailable

LOOK_SECONDS = 2.0  # of silence between two looks at the container, each on a connection of its own
SLOWER = 4  # what is due may take so many times as long as the look that found it, since an engine may be far away
QUEUED = 64  # a reader that is slower than the job holds it up, as the stream itself does
T = TypeVar("T")


class Seen(NamedTuple):
    """A look at a container: whether it has ended or is gone, and the time of its log's last line, empty for none."""

    ended: bool
    last: bytes = b""


class Followed(Generic[T]):
    """What a stream gives, until it ends or is given up, which `given_up` then says.

    After a look that found the container ended, or more in its log than at the look before, something is due: where
    nothing comes then the stream is given up, and likewise where the engine doesn't answer a look.
    """

    def __init__(self, stream: Iterator[T], look: Callable[[], Seen]) -> None:
        self.given_up = False
        self._stream, self._look = stream, look
        self._coming: queue.Queue[tuple[T, ...] | Exception] = queue.Queue(QUEUED)

    def __iter__(self) -> Iterator[T]:
        """Yield it, read by a thread that a silent connection may hold. Raises what the stream raised."""
        threading.Thread(target=self._pump, daemon=True).start()
        last: bytes | None = None
        due, patience = False, LOOK_SECONDS
        while True:
            try:
                item = self._coming.get(timeout=patience)
            except queue.Empty:
                begun = time.monotonic()
                if due or (now := self._looked()) is None:
                    self.given_up = True
                    return
                due, last = now.ended or last not in {None, now.last}, now.last
                patience = LOOK_SECONDS + SLOWER * (time.monotonic() - begun)
                continue
            due, last, patience = False, None, LOOK_SECONDS
            if isinstance(item, Exception):
                raise item
            if not item:
                return
            yield item[0]

    def _looked(self) -> Seen | None:
        try:
            return self._look()
        except TargetUnavailable:
            return None

    def _pump(self) -> None:
        try:
            for item in self._stream:
                self._coming.put((item,))
        except Exception as cause:  # who reads raises it
            self._coming.put(cause)
        finally:
            self._coming.put(())
