"""Time that goes into starting workers, collating samples and copying batches, and not into training."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import torch

from trainlaunch.inside.code_places import is_of_script
from trainlaunch.inside.probe.base.loader_stats import LoaderStats
from trainlaunch.inside.probe.base.own_loaders import batch_seconds, batches_of_epoch, start_seconds

MIN_REBUILDS, REBUILDING_SHARE = 3, 0.1
MIN_START_SECONDS, STARTING_SHARE = 1.0, 0.2
MAX_BYTES, RUNS, SLOWER = 256 * 2**20, 3, 1.2
MIN_BATCHES, MIN_COLLATE_SECONDS, COLLATE_SHARE, WAITING_SHARE = 3, 0.005, 0.5, 0.2


def iterators_rebuilt(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield one finding where loops that were left early cost more than a tenth of the time in new workers."""
    if not seen.num_workers or seen.iterators < MIN_REBUILDS:
        return
    left, length = seen.iterators - 1 - len(seen.whole) - seen.cut, batches_of_epoch(seen)
    if left < MIN_REBUILDS - 1 or (length is not None and max(seen.passes[:-1]) * 2 > length):
        return
    each, spent = start_seconds(seen), sum(seen.waits) + sum(seen.steps)
    if each * seen.iterators >= REBUILDING_SHARE * (spent + each * seen.iterators):
        yield {
            "iterators": seen.iterators,
            "batches": seen.batches,
            "seconds": each,
            "length": length,
            "num_workers": seen.num_workers,
        }


def no_persistent_workers(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield one finding where starting takes a second or more, and a fifth of the epoch."""
    batches, each = batches_of_epoch(seen), batch_seconds(seen)
    if not (seen.num_workers and seen.trained and batches and each) or seen.persistent_workers:
        return
    start, epoch = start_seconds(seen), batches * each
    if start >= MIN_START_SECONDS and start >= STARTING_SHARE * (start + epoch):
        yield {"seconds": start, "epoch_seconds": epoch, "batches": batches, "num_workers": seen.num_workers}


def no_pin_memory(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield one finding where the script trains on a GPU and pinned memory is copied there measurably faster."""
    size = max((each.size for each in seen.fetched), default=0)
    on_gpu = torch.cuda.is_available() and torch.cuda.is_initialized() and torch.cuda.memory_allocated() > 0
    if not seen.trained or seen.pin_memory or not size or not on_gpu:
        return
    batch = torch.zeros(min(size, MAX_BYTES), dtype=torch.uint8)
    pageable, pinned = _copy_seconds(batch), _copy_seconds(batch.pin_memory())
    if pageable > SLOWER * pinned:
        yield {"bytes": batch.numel(), "seconds": pageable, "pinned_seconds": pinned}


def _copy_seconds(batch: Any) -> float:
    """Return the least of a few times that a copy to the GPU takes."""
    found = []
    for _ in range(RUNS):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        batch.to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        found.append(time.perf_counter() - begun)
    return min(found)


def slow_collate(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield one finding for a collate_fn that isn't torch's, by its share of the loader's and of the script's time."""
    fetched, waits = seen.fetched, seen.waits[1:]  # the first one waits for the workers
    if len(fetched) < MIN_BATCHES or len(waits) < MIN_BATCHES or not _is_the_scripts(seen.collate_fn):
        return
    collate, fetch = (median(each) for each in zip(*((one.collate_seconds, one.fetch_seconds) for one in fetched)))
    waiting = sum(waits) / (sum(waits) + sum(seen.steps[1:]) or 1.0)
    if collate >= MIN_COLLATE_SECONDS and collate >= COLLATE_SHARE * fetch and waiting >= WAITING_SHARE:
        yield {
            "collate_seconds": collate,
            "fetch_seconds": fetch,
            "waiting": waiting,
            "collate_fn": getattr(seen.collate_fn, "__qualname__", type(seen.collate_fn).__name__),
        }


def _is_the_scripts(collate: Any) -> bool:
    """Whether somebody who reads this can change what it does: a library's own can't be mended in the script."""
    while isinstance(collate, functools.partial):
        collate = collate.func
    code = getattr(collate, "__code__", None) or getattr(type(collate).__call__, "__code__", None)
    of_torch = str(getattr(collate, "__module__", "")).startswith("torch.utils.data")
    return not of_torch and code is not None and is_of_script(code.co_filename)
