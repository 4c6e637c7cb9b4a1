"""Several calls at once: one to an engine far away takes its time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

MAX_AT_ONCE = 8
T = TypeVar("T")
R = TypeVar("R")


def at_once(call: Callable[[T], R], items: Sequence[T], *, most: int = MAX_AT_ONCE) -> list[R]:
    """Return what `call` gives for each of some items, in their order. Raises what a call raised, when all are over."""
    if len(items) < 2:
        return [call(each) for each in items]
    with ThreadPoolExecutor(min(most, len(items))) as pool:
        return list(pool.map(call, items))
