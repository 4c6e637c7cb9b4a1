"""The script's own collate_fn takes most of the time of a batch, and training waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from trainlaunch.inside.probe.base.loader_stats import Seen

FEWEST, SECONDS, SHARE, WAITING = 3, 0.005, 0.5, 0.2


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield one finding for a collate_fn that isn't torch's, by its share of the loader's and of the script's time."""
    fetched, waits = seen.fetched, seen.waits[1:]  # the first one waits for the workers
    if len(fetched) < FEWEST or len(waits) < FEWEST or _is_of_torch(seen.collate_fn):
        return
    collate, fetch = (median(each) for each in zip(*((one.collate_seconds, one.fetch_seconds) for one in fetched)))
    waiting = sum(waits) / (sum(waits) + sum(seen.steps[1:]) or 1.0)
    if collate >= SECONDS and collate >= SHARE * fetch and waiting >= WAITING:
        yield {
            "collate_seconds": collate,
            "fetch_seconds": fetch,
            "waiting": waiting,
            "collate_fn": getattr(seen.collate_fn, "__qualname__", type(seen.collate_fn).__name__),
        }


def _is_of_torch(collate: Any) -> bool:
    return str(getattr(collate, "__module__", "")).startswith("torch.utils.data")
