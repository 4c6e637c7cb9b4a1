"""A dataset keeps the samples that it has read: each process for itself, and workers lose theirs with the epoch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.probe.base.code_reading import beside
from trainlaunch.inside.probe.base.dataset_memory import deep_size, limit, ranks_here
from trainlaunch.inside.probe.base.dataset_objects import held
from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.noticing import noticed
from trainlaunch.inside.probe.base.sampling import indices, read

GROWN = 0.1  # part of the memory limit that is worth a word
SMALLEST = 32 * 2**20  # bytes; of a tiny limit anything is a tenth
READ = 12  # samples that are read to see what stays of them
KEPT = 1024  # bytes a sample: names and counters that a dataset notes are no cache
COUNTED = 2_000_000  # entries of a container that are looked at one by one
_CACHES = (dict, list, set)


def notice(seen: Seen) -> dict[str, int]:
    """Return the number of entries of each container of a dataset, before its first sample is read."""
    return {path: _filled(value) for path, value in _containers(seen.dataset)}


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield a cache that grows with each sample, and that each worker or rank fills for itself."""
    if seen.iterable or not hasattr(seen.dataset, "__len__"):
        return
    samples = len(seen.dataset)
    for path, entry, most in _grown(seen):
        workers, ranks = seen.num_workers, ranks_here()
        lost = workers > 0 and not seen.persistent_workers
        copies = ranks * (1 if lost else max(1, workers))
        total = entry * min(samples, most or samples) * copies
        if entry >= KEPT and (lost or total >= max(SMALLEST, GROWN * limit())):
            yield {
                "path": path,
                "bytes_per_sample": entry,
                "samples": samples,
                "total": total,
                "limit": limit(),
                "ranks": ranks,
                "num_workers": workers,
                "persistent_workers": not lost and workers > 0,
            }
            return


def _grown(seen: Seen) -> Iterator[tuple[str, int, int]]:
    """Yield (path, bytes of an entry, most entries or 0) of what grew by an entry a sample."""
    dataset = seen.dataset
    chosen = indices(seen, READ)
    before, cached = notice(seen), _cached(dataset)
    values = [each.value for each in (read(dataset, index) for index in chosen) if each.error is None]
    if not values:
        return
    first = (noticed(seen, "caching") or {}) if seen.num_workers == 0 else {}
    done = min(seen.batches * (seen.batch_size or 1), len(dataset))
    for path, value in _containers(dataset):
        filled = _filled(value)
        added, since = filled - before.get(path, 0), filled - first.get(path, filled)
        if added >= 0.75 * len(values) or since >= max(1, 0.75 * done):
            yield path, _entry_size(value), 0
    for name, (size, most) in _cached(dataset).items():
        if size - cached.get(name, (size, 0))[0] >= 0.75 * len(values):
            yield name, deep_size(values[-1], set()).total(), most


def _entry_size(container: Any) -> int:
    """Return the mean bytes of the entries that came last."""
    values = [each for each in _entries(container) if each is not None][-READ:]
    return sum(deep_size(each, set()).total() for each in values) // max(1, len(values))


def _filled(container: Any) -> int:
    """Return how many entries hold something: many caches are lists of None at first."""
    if len(container) > COUNTED:
        return len(container)
    return sum(each is not None for each in _entries(container))


def _entries(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container


def _containers(dataset: Any) -> list[tuple[str, Any]]:
    """Return (path, container) of a dataset, of its classes, and of the modules whose names its reading uses."""
    found = itertools.chain(held(dataset), beside(dataset))
    return [(each.path, each.value) for each in found if isinstance(each.value, _CACHES)]


def _cached(dataset: Any) -> dict[str, tuple[int, int]]:
    """Return (entries, most entries or 0) of each method or function of functools.lru_cache that reading uses."""
    found = ((each.path, getattr(each.value, "cache_info", None)) for each in beside(dataset))
    told = ((name, info()) for name, info in found if callable(info))
    return {name: (each.currsize, each.maxsize or 0) for name, each in told}
