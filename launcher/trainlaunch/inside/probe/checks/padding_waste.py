"""A good part of the batches is padding."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.probe.base.fork_copy import apart
from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.own_loaders import first_batches, trial_loader
from trainlaunch.inside.probe.base.padding import Padded, leaves, padded

BATCHES, SECONDS, READING, WASTE, OF_BATCH = 8, 30.0, 8.0, 0.3, 0.1


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield one finding where the largest padded tensor is padding to 30 % or more, and no small part of a batch."""
    if not seen.trained or seen.batch_sampler is None or not seen.batch_size:
        return
    path, found = apart(lambda: _measured(seen), SECONDS)
    if not found:
        return
    rows = [Padded(*each) for each in found]
    elements, used = sum(each.elements for each in rows), sum(each.used for each in rows)
    if used < elements * (1 - WASTE):
        yield {
            "tensor": path,
            "share": 1 - used / elements,
            "longest": max(each.longest for each in rows),
            "mean": sum(each.longest * each.used / each.elements for each in rows) / len(rows),
            "by": rows[0].by,
            "batches": len(rows),
        }


class _Measure:
    """A collate_fn that returns the bytes of the batch that the script's own makes, and what is padded in it."""

    def __init__(self, seen: Seen) -> None:
        self.collate = seen.collate_fn

    def __call__(self, samples: Any) -> tuple[int, list[Padded]]:
        batch = self.collate(samples)
        return sum(each.numel() * each.element_size() for _, each in leaves(batch)), padded(samples, batch)


def _measured(seen: Seen) -> tuple[str, list[Padded]]:
    """Return the padded tensor that takes the most of the batches, and what is known of it in each of them."""
    found: dict[str, list[Padded]] = {}
    asked = None if seen.iterable else list(first_batches(seen, BATCHES))
    size, deadline = 0, time.monotonic() + READING
    loading = iter(trial_loader(seen, 1, _Measure(seen), None, asked, seen.batch_size or 1))
    for _ in range(BATCHES):
        try:
            own, tensors = next(loading)
        except StopIteration:
            break
        except Exception:  # noqa: S112 - of a sample, which another check names
            continue
        size += own
        for each in tensors:
            found.setdefault(each.path, []).append(each)
        if time.monotonic() > deadline:
            break
    sizes = {path: sum(each.size for each in rows) for path, rows in found.items()}
    largest = max(sizes, key=lambda path: sizes[path], default="")
    return largest, found.get(largest, []) if sizes.get(largest, 0) >= OF_BATCH * size else []
