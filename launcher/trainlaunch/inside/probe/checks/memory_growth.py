"""What grows in memory or /dev/shm: copies of a dataset, samples that it keeps, batches that the script keeps."""

from __future__ import annotations

import itertools
import sys
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.code_places import is_of_script, place
from trainlaunch.inside.probe.base.dataset_memory import Sizes, deep_size, limit, ranks_here, sizes
from trainlaunch.inside.probe.base.dataset_objects import attributes, beside, is_array, parts, reachable_objects
from trainlaunch.inside.probe.base.loader_facts import start_method
from trainlaunch.inside.probe.base.loader_stats import LoaderStats, noticed, once_per_loader
from trainlaunch.inside.probe.base.sampling import indices, read

GROWN, IN_MEMORY, ALONE = 0.1, 0.25, 0.5  # parts of the memory limit that are worth a word
MIN_BYTES = 32 * 2**20  # bytes; of a tiny limit anything is a tenth
READ = 12  # samples that are read to see what stays of them
KEPT = 1024  # bytes a sample: names and counters that a dataset notes are no cache
COUNTED = 2_000_000  # entries of a container that are looked at one by one
_CACHES = (dict, list, set)
MIN_KEPT = 4  # batches
KEPT_SHARE = 0.9  # of all batches so far; a window of the last few is kept on purpose
MIN_NAMELESS = 16  # batches, where no variable is found: a trainer may take as many before it makes a step
_KEEPERS = (list, tuple, deque, dict, set)


@once_per_loader
def _sizes(seen: LoaderStats) -> Sizes:
    return sizes(seen.dataset)


def copy_on_write_growth(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield how far forked workers grow by reading Python objects: each read writes to the object's own page."""
    found, workers = _sizes(seen), seen.num_workers
    total = found.whole.objects * workers * ranks_here()
    if start_method(seen) == "fork" and total >= max(MIN_BYTES, GROWN * limit()):
        yield {"path": found.most_objects, "bytes": found.whole.objects, "total": total, **_around(seen)}


def in_memory_dataset(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield what a dataset in memory takes where each rank, and each worker that isn't forked, has its own."""
    found, count = _sizes(seen), 1 if start_method(seen) == "fork" else 1 + seen.num_workers
    size, ranks = found.whole, ranks_here()
    total = ((size.objects + size.data) * count + size.tensors) * ranks
    if total >= max(MIN_BYTES, (IN_MEMORY if count * ranks > 1 else ALONE) * limit()):
        yield {"path": found.largest, "bytes": size.total(), "copies": count, "total": total, **_around(seen)}


def _around(seen: LoaderStats) -> dict[str, Any]:
    known = {"limit": limit(), "ranks": ranks_here()}
    return {**known, "num_workers": seen.num_workers, "start_method": start_method(seen)}


def notice_caches(seen: LoaderStats) -> dict[str, int]:
    """Return the number of entries of each container of a dataset, before its first sample is read."""
    return {path: _filled(value) for path, value in _containers(seen.dataset)}


def cache_per_rank(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield a cache that grows with each sample, and that each worker or rank fills for itself."""
    if seen.iterable or not hasattr(seen.dataset, "__len__"):
        return
    samples = len(seen.dataset)
    for path, entry, most in _grown(seen):
        workers, ranks = seen.num_workers, ranks_here()
        lost = workers > 0 and not seen.persistent_workers
        copies = ranks * (1 if lost else max(1, workers))
        total = entry * min(samples, most or samples) * copies
        if entry >= KEPT and (lost or total >= max(MIN_BYTES, GROWN * limit())):
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


def _grown(seen: LoaderStats) -> Iterator[tuple[str, int, int]]:
    """Yield (path, bytes of an entry, most entries or 0) of what grew by an entry a sample."""
    dataset = seen.dataset
    chosen = indices(seen, READ)
    before, cached = notice_caches(seen), _cached(dataset)
    values = [each.value for each in (read(dataset, index) for index in chosen) if each.error is None]
    if not values:
        return
    first = (noticed(seen, "caches") or {}) if seen.num_workers == 0 else {}
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
    found = itertools.chain(reachable_objects(dataset), beside(dataset))
    return [(each.path, each.value) for each in found if isinstance(each.value, _CACHES)]


def _cached(dataset: Any) -> dict[str, tuple[int, int]]:
    """Return (entries, most entries or 0) of each method or function of functools.lru_cache that reading uses."""
    found = ((each.path, getattr(each.value, "cache_info", None)) for each in beside(dataset))
    told = ((name, info()) for name, info in found if callable(info))
    return {name: (each.currsize, each.maxsize or 0) for name, each in told}


def note_kept_batches(seen: LoaderStats) -> None:
    """Note at the end of a loop what is kept; what its function returns may have no name later."""
    seen.noticed.setdefault("kept", next(_kept(seen), None))


def kept_batches(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield the variable that holds the batches of a loader with workers; a pinned batch is a copy already."""
    known = seen.noticed.get("kept")
    yield from [known] if known else itertools.islice(_kept(seen), 1)


def _kept(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    done = seen.passes[-1] if seen.passes else 0
    held = seen.held.holds()
    if not seen.num_workers or seen.pins or held.batches < max(MIN_KEPT, KEPT_SHARE * done):
        return
    storages = next((each.storages for each in seen.fetched if each.storages), None) or []
    told = {"held": held.batches, "batches": done, "bytes": seen.held.size, "tensors": len(storages)}
    told.update(storages=held.storages, held_bytes=held.size)
    for name, container, at in _variables(sys._current_frames().get(threading.main_thread().ident or 0)):
        if len(container) >= max(MIN_KEPT, KEPT_SHARE * done) and _holds_batches(container):
            yield {"name": name, "at": at, **told}
    if done >= MIN_NAMELESS:
        yield {"name": "", "at": "", **told}


def _variables(frame: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield (name, container, place) of the script's variables, and of the attributes of what they name."""
    done: set[int] = set()
    while frame is not None:
        code = frame.f_code
        if is_of_script(code.co_filename):
            at = place(code.co_filename, frame.f_lineno)
            for name, value in list(frame.f_locals.items()) + list(frame.f_globals.items()):
                for path, each in [(name, value), *((name + suffix, one) for suffix, one in attributes(value))]:
                    if isinstance(each, _KEEPERS) and id(each) not in done:
                        done.add(id(each))
                        yield path, each, at
        frame = frame.f_back


def _holds_batches(container: Any) -> bool:
    """Whether the entries of a container hold tensors that came from a worker, and aren't a dataset's own."""
    entries = list(itertools.islice(container.values() if isinstance(container, dict) else container, 64))
    shared = [each for each in entries if any(_is_shared(one) for one in _arrays(each))]
    return len(shared) >= KEPT_SHARE * len(entries)


def _arrays(entry: Any, depth: int = 0) -> Iterator[Any]:
    if is_array(entry):
        yield entry
    elif depth < 3:
        for _, each in itertools.islice(parts(entry), 32):
            yield from _arrays(each, depth + 1)


def _is_shared(array: Any) -> bool:
    return bool(hasattr(array, "is_shared") and array.device.type == "cpu" and array.is_shared())
