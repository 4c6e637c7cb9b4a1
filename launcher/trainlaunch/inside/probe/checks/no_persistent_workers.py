"""Each epoch starts the workers anew, and that takes a good part of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.starting import batch_seconds, batches_of_epoch, start_seconds

SECONDS, SHARE = 1.0, 0.2


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield one finding where starting takes a second or more, and a fifth of the epoch."""
    batches, each = batches_of_epoch(seen), batch_seconds(seen)
    if not (seen.num_workers and seen.trained and batches and each) or seen.persistent_workers:
        return
    start, epoch = start_seconds(seen), batches * each
    if start >= SECONDS and start >= SHARE * (start + epoch):
        yield {"seconds": start, "epoch_seconds": epoch, "batches": batches, "num_workers": seen.num_workers}
