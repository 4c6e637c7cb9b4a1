"""Loaders of probe's own over a script's dataset: its workers, their start and its collate_fn, but other indices."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Callable, Iterator
from typing import Any

from trainlaunch.inside.probe.base.loader_stats import Seen


def trial_loader(
    seen: Seen,
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


def start_method(seen: Seen) -> str:
    """Return how the loader's workers start: fork, spawn or forkserver."""
    method = getattr(seen.context, "get_start_method", None)
    return str(method() if callable(method) else multiprocessing.get_start_method())


def first_indices(seen: Seen, count: int) -> list[Any]:
    """Return the first `count` indices that the loader's own samplers give.

    Of a loader that doesn't batch a list may be one index.
    """
    if seen.batch_sampler is not None:
        return list(itertools.islice(itertools.chain.from_iterable(seen.batch_sampler), count))
    return list(itertools.islice(iter(seen.sampler or ()), count))


def sampler_of(seen: Seen) -> Any:
    """Return the sampler that alone decides what the dataset is asked for; None where a script's batch_sampler does."""
    from torch.utils.data import BatchSampler

    own = seen.batch_sampler
    return seen.sampler if own is None else own.sampler if type(own) is BatchSampler else None


def first_batches(seen: Seen, count: int) -> Iterator[Any]:
    """Yield what the loader's samplers ask the dataset for: lists of indices, or single ones where it doesn't batch."""
    return itertools.islice(iter(indices_asked(seen)), count)


def indices_asked(seen: Seen) -> Any:
    """Return what gives the indices that the dataset is asked for."""
    return seen.batch_sampler if seen.batch_sampler is not None else seen.sampler or ()


def samples_of_last_batch(seen: Seen) -> int:
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


def is_shuffled(seen: Seen) -> bool:
    """Whether the loader's order may be random: every sampler but those of torch that are known to be in order."""
    from torch.utils.data import DistributedSampler, SequentialSampler

    sampler = getattr(seen.batch_sampler, "sampler", seen.sampler)
    in_order = type(sampler) is SequentialSampler
    return not (in_order or (isinstance(sampler, DistributedSampler) and not sampler.shuffle))
