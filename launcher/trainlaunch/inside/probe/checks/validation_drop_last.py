"""A loader that evaluates leaves out the samples of its last batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.own_loaders import is_shuffled, samples_of_last_batch


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield one finding for a loader that never trains, isn't shuffled, and drops some of its samples."""
    sampler = seen.batch_sampler
    if seen.iterable or seen.trained or not getattr(sampler, "drop_last", False) or is_shuffled(seen):
        return
    dropped = samples_of_last_batch(seen)
    if dropped:
        samples = len(sampler.sampler)
        yield {"samples": samples, "dropped": dropped, "batch_size": sampler.batch_size, "ran": seen.order is not None}
