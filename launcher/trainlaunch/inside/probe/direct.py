"""Fetches batches of a loader that the script has built and not iterated yet."""

from __future__ import annotations

import itertools
import os
import time

from trainlaunch.inside.probe.base.fork_copy import apart
from trainlaunch.inside.probe.base.loader_stats import Fetched, Seen
from trainlaunch.inside.probe.base.storages import weigh

_BATCHES = 8
_SECONDS = 10.0


def fetch_directly(seen: Seen) -> None:
    """Note what the first batches of a loader weigh. Raises RuntimeError with what its dataset raises.

    In a copy of this process: what the dataset opens meanwhile must not be open in workers that checks start.
    """
    seen.fetched += [Fetched(*each) for each in apart(lambda: _fetched(seen), 2 * _SECONDS)]


def _fetched(seen: Seen) -> list[Fetched]:
    from torch.utils.data.dataloader import _DatasetKind

    loader, begun = seen.loader, time.monotonic()
    fetcher = _DatasetKind.create_fetcher(
        loader._dataset_kind, seen.dataset, loader._auto_collation, seen.collate_fn, seen.drop_last
    )
    found, largest = [], -1
    for index in itertools.islice(iter(loader._index_sampler), _BATCHES):
        started = time.perf_counter()
        try:
            weight = weigh(fetcher.fetch(index))
        except StopIteration:
            break
        pages, spent = weight.pages, time.perf_counter() - started
        storages, largest = (weight.storages if pages > largest else None), max(pages, largest)
        count = len(index) if loader._auto_collation else None
        found.append(Fetched(os.getpid(), -1, count, weight.size, pages, storages, weight.pickled, spent, 0.0))
        if time.monotonic() - begun > _SECONDS:
            break
    return found
