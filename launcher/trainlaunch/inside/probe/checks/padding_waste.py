"""A good part of the batches is padding, by comparing them with their samples, or by what their rows end with."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from trainlaunch.inside.probe.base.dataset_objects import parts
from trainlaunch.inside.probe.base.isolation import run_in_fork
from trainlaunch.inside.probe.base.loader_stats import LoaderStats
from trainlaunch.inside.probe.base.own_loaders import first_batches, trial_loader

BATCHES, SECONDS, READING, WASTE, OF_BATCH = 8, 30.0, 8.0, 0.3, 0.1
MIN_ROW, DEPTH = 8, 4  # of a row that is worth cutting; of containers in containers
COLLATE, DATASET = "collate_fn", "dataset"


def padding_waste(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield one finding where the largest padded tensor is padding to 30 % or more, and no small part of a batch."""
    if not seen.trained or seen.batch_sampler is None or not seen.batch_size:
        return
    path, found = run_in_fork(lambda: _measured(seen), SECONDS)
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

    def __init__(self, seen: LoaderStats) -> None:
        self.collate = seen.collate_fn

    def __call__(self, samples: Any) -> tuple[int, list[Padded]]:
        batch = self.collate(samples)
        return sum(each.numel() * each.element_size() for _, each in leaves(batch)), padded(samples, batch)


def _measured(seen: LoaderStats) -> tuple[str, list[Padded]]:
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


class Padded(NamedTuple):
    """One tensor of a batch: `path` in the batch, its elements with and without padding, and who pads it."""

    path: str
    elements: int
    used: int
    size: int  # bytes
    longest: int  # of a row, with padding
    by: str


def padded(samples: Sequence[Any], batch: Any) -> list[Padded]:
    """Return what is known of the tensors of one batch that have a row for each sample."""
    found = []
    own = [dict(leaves(each)) for each in samples]
    for path, tensor in leaves(batch):
        rows = _rows(tensor, len(samples))
        if rows is None:
            continue
        by, used = COLLATE, _used_of_samples(rows, own)
        if used is None:
            by, used = DATASET, _used_of_rows(rows)
        if used is not None:
            size = rows.numel() * rows.element_size()
            longest = rows.shape[1] if rows.shape[1] >= MIN_ROW else max(rows.shape[1:])
            found.append(Padded(path, rows.numel(), used, size, longest, by))
    return found


def _rows(tensor: Any, samples: int) -> Any:
    """Return a tensor with a row for each sample first, None where it has none, or no row that is worth cutting."""
    if samples < 2 or tensor.is_nested or tensor.dim() < 2 or tensor.layout is not sys.modules["torch"].strided:
        return None
    if tensor.shape[0] != samples:
        tensor = tensor.transpose(0, 1)  # as pad_sequence gives it
    return tensor if tensor.shape[0] == samples and max(tensor.shape[1:]) >= MIN_ROW else None


def leaves(value: Any, path: str = "", depth: int = DEPTH) -> Iterator[tuple[str, Any]]:
    """Yield (path, tensor) of what a sample or batch holds: tensors, arrays, and lists of numbers."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, (str, bytes)) or depth == 0:
        return
    elif _is_numbers(value):
        yield path, torch.as_tensor(value)
    else:
        for suffix, each in parts(value):
            yield from leaves(each, path + suffix, depth - 1)


def _is_numbers(value: Any) -> bool:
    if hasattr(value, "__array__") and hasattr(value, "dtype"):
        return getattr(value.dtype, "kind", "") in "biuf"
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(isinstance(each, (int, float)) for each in value)


def _used_of_samples(tensor: Any, samples: list[dict[str, Any]]) -> int | None:
    """Return how many elements come from the samples, None where no part of theirs has another length and is in it."""
    for path in samples[0]:
        own = [each[path] for each in samples if path in each]
        if len(own) < len(samples) or any(each.dim() != tensor.dim() - 1 for each in own):
            continue
        if len({tuple(each.shape) for each in own}) < 2:
            continue
        if all(_holds(row, each) for row, each in zip(tensor, own)):
            return sum(int(each.numel()) for each in own)
    return None


def _holds(row: Any, sample: Any) -> bool:
    """Whether a row begins, or ends, with the sample."""
    if any(inner > outer for inner, outer in zip(sample.shape, row.shape)):
        return False
    sides = (slice(None), *(slice(0, each) for each in sample.shape[1:]))
    part, length = row[sides].to(sample.dtype), sample.shape[0]
    return bool(torch.equal(part[:length], sample) or torch.equal(part[len(part) - length :], sample))


def _used_of_rows(tensor: Any) -> int | None:
    """Return how many elements stand before the last value of rows of whole numbers, None where those are no padding.

    Padding is one value that most rows end with, or begin with, in varying number, and that stands nowhere else.
    """
    if tensor.dim() != 2 or tensor.shape[1] < MIN_ROW or tensor.dtype not in (torch.int64, torch.int32):
        return None
    for rows in (tensor, tensor.flip(1)):
        value = int(rows[:, -1].mode().values)
        others = rows != value
        width = rows.shape[1]
        # The length of a row without what it ends with: behind the last other value.
        lengths = (others * torch.arange(1, width + 1)).amax(dim=1)
        alone = bool((others.sum(dim=1) == lengths).all())
        if alone and int((lengths < width).sum()) * 2 >= len(rows) and len(set(lengths.tolist())) > 2:
            return int(lengths.sum())
    return None
