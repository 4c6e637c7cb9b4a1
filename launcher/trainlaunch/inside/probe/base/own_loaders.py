"""Loaders of probe's own over a script's dataset: its workers, their start and its collate_fn, but other indices.

With them: how long workers take to start, and what each worker yields of an iterable dataset, as hashes.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple

from trainlaunch.inside.probe.base.digest import digest, parts_of
from trainlaunch.inside.probe.base.isolation import run_in_fork
from trainlaunch.inside.probe.base.loader_facts import start_method
from trainlaunch.inside.probe.base.loader_stats import LoaderStats, once_per_loader

START_SECONDS = 60.0
STREAM_SECONDS, READING_SECONDS, MAX_WORKERS, MAX_SAMPLES = 60.0, 10.0, 16, 256


def trial_loader(
    seen: LoaderStats,
    workers: int,
    collate: Callable[[Any], Any],
    start: Callable[[int], None] | None = None,
    batches: list[Any] | None = None,
    size: int = 1,
) -> Any:
    """Return a DataLoader over the indices in `batches`, one after the other where the script's doesn't batch.

    Without `batches`, for a stream: all samples in batches of `size`.
    `collate` gets what the script's collate_fn would get. Workers
    start as the script's do (forkserver as spawn: a copy of a process has no server), and run `start`.
    """
    changed: dict[str, Any] = {"collate_fn": collate, "worker_init_fn": start or seen.worker_init_fn}
    if batches is None:
        changed.update(batch_size=size if seen.batch_sampler is not None else None, drop_last=False)
    elif seen.batch_sampler is not None:
        changed["batch_sampler"] = batches
    else:
        changed["sampler"] = list(itertools.chain.from_iterable(batches))
    if workers:
        changed["multiprocessing_context"] = "fork" if start_method(seen) == "fork" else "spawn"
    return seen.similar(workers, **changed)


def first_indices(seen: LoaderStats, count: int) -> list[Any]:
    """Return the first `count` indices that the loader's own samplers give.

    Of a loader that doesn't batch a list may be one index.
    """
    if seen.batch_sampler is not None:
        return list(itertools.islice(itertools.chain.from_iterable(seen.batch_sampler), count))
    return list(itertools.islice(iter(seen.sampler or ()), count))


def sampler_of(seen: LoaderStats) -> Any:
    """Return the sampler that alone decides what the dataset is asked for; None where a script's batch_sampler does."""
    from torch.utils.data import BatchSampler

    own = seen.batch_sampler
    return seen.sampler if own is None else own.sampler if type(own) is BatchSampler else None


def first_batches(seen: LoaderStats, count: int) -> Iterator[Any]:
    """Yield what the loader's samplers ask the dataset for: lists of indices, or single ones where it doesn't batch."""
    return itertools.islice(iter(indices_asked(seen)), count)


def indices_asked(seen: LoaderStats) -> Any:
    """Return what gives the indices that the dataset is asked for."""
    return seen.batch_sampler if seen.batch_sampler is not None else seen.sampler or ()


def samples_of_last_batch(seen: LoaderStats) -> int:
    """Return how many samples are left for an epoch's last batch; 0 where all are full, or where that isn't known.

    Known for torch's own BatchSampler, whether it drops that batch or not.
    """
    from torch.utils.data import BatchSampler

    sampler = seen.batch_sampler
    if type(sampler) is not BatchSampler:
        return 0
    try:
        return int(len(sampler.sampler) % sampler.batch_size)
    except TypeError:  # a sampler without a length
        return 0


def is_shuffled(seen: LoaderStats) -> bool:
    """Whether the loader's order may be random: every sampler but those of torch that are known to be in order."""
    from torch.utils.data import DistributedSampler, SequentialSampler

    sampler = getattr(seen.batch_sampler, "sampler", seen.sampler)
    in_order = type(sampler) is SequentialSampler
    return not (in_order or (isinstance(sampler, DistributedSampler) and not sampler.shuffle))


def distributed_order(seen: LoaderStats) -> tuple[int, int] | None:
    """Return seed and epoch, from which torch's DistributedSampler shuffles; None where no such one does."""
    from torch.utils.data import DistributedSampler

    samplers: tuple[Any, ...] = (seen.sampler, getattr(seen.batch_sampler, "sampler", None))
    for each in samplers:
        own = isinstance(each, DistributedSampler) and type(each).__iter__ is DistributedSampler.__iter__
        if own and each.shuffle:
            return int(each.seed), int(each.epoch)
    return None


class _Moment:
    """A collate_fn that returns when a worker has its first samples, and when it was ready to read them."""

    def __init__(self, seen: LoaderStats) -> None:
        self.init = seen.worker_init_fn
        self.ready = 0.0

    def start(self, worker: int) -> None:
        if self.init is not None:
            self.init(worker)
        self.ready = time.monotonic()

    def __call__(self, data: Any) -> float:
        return self.ready


@once_per_loader
def start_seconds(seen: LoaderStats) -> float:
    """Return the seconds from the start of the loader's workers until the last could read, and for their end.

    The least of two, since other processes take time too; once a loader. Raises what `apart` raises.
    """
    return float(run_in_fork(lambda: min(_start_seconds(seen), _start_seconds(seen)), START_SECONDS))


def _start_seconds(seen: LoaderStats) -> float:
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


def batch_seconds(seen: LoaderStats) -> float:
    """Return the seconds that the script takes for a batch, waiting and step, without the first; 0 if unknown."""
    both = [wait + step for wait, step in zip(seen.waits[1:], seen.steps[1:])]
    return median(both) if both else 0.0


def batches_of_epoch(seen: LoaderStats) -> int | None:
    """Return how many batches an epoch has, of a stream how many one had that was seen; None where that isn't known."""
    if seen.iterable:
        return max(seen.whole, default=None)
    try:
        return len(indices_asked(seen))
    except TypeError:  # a sampler without a length
        return None


class Stream(NamedTuple):
    """Hashes of each worker's samples in order, and whether every worker came to its end; texts of their parts."""

    workers: list[list[str]]
    ended: bool
    parts: list[list[list[str]]]


def _of_worker(data: Any) -> tuple[int, str, list[str]]:
    from torch.utils.data import get_worker_info

    return get_worker_info().id, digest(data), parts_of(data[0] if isinstance(data, list) and len(data) == 1 else data)


@once_per_loader
def stream(seen: LoaderStats) -> Stream:
    """Return what the loader's workers yield, of two where it has fewer; measured once. Raises what `apart` raises."""
    return Stream(*run_in_fork(lambda: _read_stream(seen), STREAM_SECONDS))


def _read_stream(seen: LoaderStats) -> tuple[list[list[str]], bool, list[list[list[str]]]]:
    workers = max(2, min(seen.num_workers, MAX_WORKERS))
    found: list[list[str]] = [[] for _ in range(workers)]
    parts: list[list[list[str]]] = [[] for _ in range(workers)]
    deadline = 0.0
    for worker, each, own in trial_loader(seen, workers, _of_worker):
        deadline = deadline or time.monotonic() + READING_SECONDS  # from the first sample on
        found[worker].append(each)
        parts[worker].append(own)
        # Workers take turns: once one gives its second sample, those without a first have come to their end.
        if max(map(len, found)) > MAX_SAMPLES or (time.monotonic() > deadline and max(map(len, found)) > 1):
            return found, False, parts[:2]
    return found, True, parts[:2]
