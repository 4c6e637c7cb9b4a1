"""Fetches batches of a loader that the script has built and not iterated yet, in this process."""

from __future__ import annotations

import itertools
import os
import time

from launcher.inside.probe.seen import Fetched, Seen
from launcher.inside.probe.storages import weigh

_BATCHES = 8
_SECONDS = 10.0


def fetch_directly(seen: Seen) -> None:
    """Note what the first batches of a loader weigh. Raises what its dataset raises."""
    from torch.utils.data.dataloader import _DatasetKind

    loader, begun = seen.loader, time.monotonic()
    fetcher = _DatasetKind.create_fetcher(
        loader._dataset_kind, seen.dataset, loader._auto_collation, seen.collate_fn, seen.drop_last
    )
    largest = -1
    for index in itertools.islice(iter(loader._index_sampler), _BATCHES):
        started = time.perf_counter()
        try:
            weight = weigh(fetcher.fetch(index))
        except StopIteration:
            return
        pages, spent = weight.pages, time.perf_counter() - started
        storages, largest = (weight.storages if pages > largest else None), max(pages, largest)
        count = len(index) if loader._auto_collation else None
        seen.fetched.append(Fetched(os.getpid(), -1, count, weight.size, pages, storages, weight.pickled, spent, 0.0))
        if time.monotonic() - begun > _SECONDS:
            return
