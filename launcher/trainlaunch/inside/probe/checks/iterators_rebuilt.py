"""A script starts a loader's workers again and again for a few batches each time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.starting import batches_of_epoch, start_seconds

FEWEST, SHARE = 3, 0.1


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield one finding where loops that were left early cost more than a tenth of the time in new workers."""
    if not seen.num_workers or seen.iterators < FEWEST:
        return
    left, length = seen.iterators - 1 - len(seen.whole) - seen.cut, batches_of_epoch(seen)
    if left < FEWEST - 1 or (length is not None and max(seen.passes[:-1]) * 2 > length):
        return
    each, spent = start_seconds(seen), sum(seen.waits) + sum(seen.steps)
    if each * seen.iterators >= SHARE * (spent + each * seen.iterators):
        yield {
            "iterators": seen.iterators,
            "batches": seen.batches,
            "seconds": each,
            "length": length,
            "num_workers": seen.num_workers,
        }
