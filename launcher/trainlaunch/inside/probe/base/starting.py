"""How long a loader's workers take to start, measured with workers of probe's own."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from trainlaunch.inside.probe.base.fork_copy import apart
from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.own_loaders import first_batches, indices_asked, trial_loader

SECONDS = 60.0
_known: dict[int, tuple[Seen, float]] = {}  # with what is seen, or another could get its id


class _Moment:
    """A collate_fn that returns when a worker has its first samples, and when it was ready to read them."""

    def __init__(self, seen: Seen) -> None:
        self.init = seen.worker_init_fn
        self.ready = 0.0

    def start(self, worker: int) -> None:
        if self.init is not None:
            self.init(worker)
        self.ready = time.monotonic()

    def __call__(self, data: Any) -> float:
        return self.ready


def start_seconds(seen: Seen) -> float:
    """Return the seconds from the start of the loader's workers until the last could read, and for their end.

    The least of two, since other processes take time too; once a loader. Raises what `apart` raises.
    """
    if id(seen) not in _known:
        _known[id(seen)] = seen, float(apart(lambda: min(_measured(seen), _measured(seen)), SECONDS))
    return _known[id(seen)][1]


def _measured(seen: Seen) -> float:
    moment = _Moment(seen)
    batches = None
    if not seen.iterable:
        first = next(iter(first_batches(seen, 1)))
        index = first[0] if isinstance(first, list) and seen.batch_sampler is not None else first
        batches = [[index]] * seen.num_workers
    begun = time.monotonic()
    iterator = iter(trial_loader(seen, seen.num_workers, moment, moment.start, batches))
    ready = [next(iterator, begun) for _ in range(seen.num_workers)]
    ending = time.monotonic()
    del iterator
    return max(ready) - begun + time.monotonic() - ending


def batch_seconds(seen: Seen) -> float:
    """Return the seconds that the script takes for a batch, waiting and step, without the first; 0 if unknown."""
    both = [wait + step for wait, step in zip(seen.waits[1:], seen.steps[1:])]
    return median(both) if both else 0.0


def batches_of_epoch(seen: Seen) -> int | None:
    """Return how many batches an epoch has, of a stream how many one had that was seen; None where that isn't known."""
    if seen.iterable:
        return max(seen.whole, default=None)
    try:
        return len(indices_asked(seen))
    except TypeError:  # a sampler without a length
        return None
