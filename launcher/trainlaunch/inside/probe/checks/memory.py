"""What copies of a dataset's memory come to, one in each process that gets its own, against the container's limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.probe.base.dataset_memory import Sizes, limit, ranks_here, sizes
from trainlaunch.inside.probe.base.loader_facts import start_method
from trainlaunch.inside.probe.base.loader_stats import Seen

GROWN, IN_MEMORY, ALONE = 0.1, 0.25, 0.5  # parts of the memory limit that are worth a word
SMALLEST = 32 * 2**20  # bytes; of a tiny limit anything is a tenth
_known: dict[int, tuple[Seen, Sizes]] = {}  # with what is seen, or another could get its id


def _sizes(seen: Seen) -> Sizes:
    if id(seen) not in _known:
        _known[id(seen)] = seen, sizes(seen.dataset)
    return _known[id(seen)][1]


def growth(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield how far forked workers grow by reading Python objects: each read writes to the object's own page."""
    found, workers = _sizes(seen), seen.num_workers
    total = found.whole.objects * workers * ranks_here()
    if start_method(seen) == "fork" and total >= max(SMALLEST, GROWN * limit()):
        yield {"path": found.most_objects, "bytes": found.whole.objects, "total": total, **_around(seen)}


def copies(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield what a dataset in memory takes where each rank, and each worker that isn't forked, has its own."""
    found, count = _sizes(seen), 1 if start_method(seen) == "fork" else 1 + seen.num_workers
    size, ranks = found.whole, ranks_here()
    total = ((size.objects + size.data) * count + size.tensors) * ranks
    if total >= max(SMALLEST, (IN_MEMORY if count * ranks > 1 else ALONE) * limit()):
        yield {"path": found.largest, "bytes": size.total(), "copies": count, "total": total, **_around(seen)}


def _around(seen: Seen) -> dict[str, Any]:
    known = {"limit": limit(), "ranks": ranks_here()}
    return {**known, "num_workers": seen.num_workers, "start_method": start_method(seen)}
