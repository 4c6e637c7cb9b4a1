"""A GPU job copies its batches from memory that isn't pinned."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.probe.base.loader_stats import Seen

MOST, RUNS, SLOWER = 256 * 2**20, 3, 1.2


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield one finding where the script trains on a GPU and pinned memory is copied there measurably faster."""
    import torch

    size = max((each.size for each in seen.fetched), default=0)
    on_gpu = torch.cuda.is_available() and torch.cuda.is_initialized() and torch.cuda.memory_allocated() > 0
    if not seen.trained or seen.pin_memory or not size or not on_gpu:
        return
    batch = torch.zeros(min(size, MOST), dtype=torch.uint8)
    pageable, pinned = _seconds(batch), _seconds(batch.pin_memory())
    if pageable > SLOWER * pinned:
        yield {"bytes": batch.numel(), "seconds": pageable, "pinned_seconds": pinned}


def _seconds(batch: Any) -> float:
    """Return the least of a few times that a copy to the GPU takes."""
    import torch

    found = []
    for _ in range(RUNS):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        batch.to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        found.append(time.perf_counter() - begun)
    return min(found)
