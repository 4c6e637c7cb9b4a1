"""The last batch of an epoch has one sample, and a BatchNorm layer would get one value for each channel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.probe.base import norms
from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.own_loaders import samples_of_last_batch


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield one finding where a layer in training mode got no more values for a channel than the batch had samples."""
    if seen.iterable or not seen.trained or seen.batch_sampler is None:
        return
    sizes = {each.samples for each in seen.fetched} | {seen.batch_size}
    layers = sorted({kind for kind, shape in norms.inputs if shape[0] in sizes and norms.values(shape) == shape[0]})
    if layers and not seen.drop_last and samples_of_last_batch(seen) == 1:
        yield {"layers": layers[:3], "batch_size": seen.batch_size, "samples": len(seen.batch_sampler.sampler)}
