"""Workers of an iterable dataset all yield the same samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.worker_streams import stream

FEWEST, MOST_REPEATS = 4, 0.1
OF_PART, CHANGES = 32, 0.3  # samples of which one part is compared; how many differ there from the one before


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
        yield {"samples": count, "ended": found.ended, "num_workers": seen.num_workers, "part": None}
        return
    alike = [number for number, pair in enumerate(_columns(found.parts)) if _is_one_order(*pair)]
    if alike and not set(first) & set(second):  # what else they have is augmented at random
        yield {"samples": count, "ended": found.ended, "num_workers": seen.num_workers, "part": alike[0]}


def _columns(samples: list[list[list[str]]]) -> list[tuple[list[str], list[str]]]:
    """Return each part of the samples as two workers gave it."""
    given = [[list(each) for each in zip(*worker)] for worker in samples if worker]
    return list(zip(given[0], given[1])) if len(given) == 2 else []


def _is_one_order(first: list[str], second: list[str]) -> bool:
    """Whether one part of many samples has one order that no two shares have by chance: names of files, labels.

    Labels that are sorted or that alternate are equal in shares as well, and so are numbers that count them.
    """
    count = min(len(first), len(second))
    first, second = first[:count], second[:count]
    if count < OF_PART or first != second or sum(a != b for a, b in zip(first[1:], first)) < CHANGES * count:
        return False
    if any(first[period:] == first[:-period] for period in range(1, count // 2 + 1)):
        return False
    numbers = [float(each[1:]) for each in first if each.startswith("#")]
    steps = {round(after - before, 9) for after, before in zip(numbers[1:], numbers)}
    return len(numbers) < count or len(steps) > 1


def _in_order(first: list[str], second: list[str]) -> bool:
    """Whether both are one sequence; one of a few values that alternate tells nothing."""
    return first == second and len(set(first)) >= max(FEWEST, len(first) // 4)


def _in_any_order(first: list[str], second: list[str]) -> bool:
    """Whether both hold the same samples, and hardly one twice."""
    return set(first) == set(second) and len(set(first)) >= (1 - MOST_REPEATS) * max(len(first), len(second))
