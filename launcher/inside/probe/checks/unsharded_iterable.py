"""Workers of an iterable dataset all yield the same samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from launcher.inside.probe.seen import Seen
from launcher.inside.probe.streams import stream

FEWEST, MOST_REPEATS = 4, 0.1


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield one finding where two workers give the same sequence, or all that there is in another order."""
    if not seen.iterable:
        return
    found = stream(seen)
    given = [each for each in found.workers if each]
    if len(given) < 2 or min(map(len, given)) < FEWEST:
        return
    first, second = given[:2]
    count = min(len(first), len(second))
    if _in_order(first[:count], second[:count]) or (found.ended and _in_any_order(first, second)):
        yield {"samples": count, "ended": found.ended, "num_workers": seen.num_workers}


def _in_order(first: list[str], second: list[str]) -> bool:
    """Whether both are one sequence; one of a few values that alternate tells nothing."""
    return first == second and len(set(first)) >= max(FEWEST, len(first) // 4)


def _in_any_order(first: list[str], second: list[str]) -> bool:
    """Whether both hold the same samples, and hardly one twice."""
    return set(first) == set(second) and len(set(first)) >= (1 - MOST_REPEATS) * max(len(first), len(second))
