"""A worker of an iterable dataset yields nothing: there are more workers than shards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.worker_streams import MOST_WORKERS, stream


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield one finding where some workers give samples and others none."""
    if not seen.iterable or not 2 <= seen.num_workers <= MOST_WORKERS:
        return
    found = stream(seen)
    idle = [worker for worker, samples in enumerate(found.workers) if not samples]
    busy = len(found.workers) - len(idle)
    if idle and busy and max(map(len, found.workers)) > 1:
        yield {"idle": idle, "busy": busy, "num_workers": seen.num_workers, "shards": _shards(seen.dataset)}


def _shards(dataset: Any) -> Any:
    """Return the number of shards that the dataset itself states, None where it doesn't."""
    for name in ("num_shards", "n_shards"):
        value = getattr(dataset, name, None)
        if isinstance(value, int):
            return value
    return None
