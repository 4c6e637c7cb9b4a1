"""The storages that one collated batch puts in /dev/shm, and the pages that they take.

Measured with torch 2.13 (docs/sizing.md): each distinct tensor storage is one tmpfs file, rounded up to whole pages.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from trainlaunch.job.loader_spec import BatchBytes, LoaderSpec
from trainlaunch.units import round_up

FILE_SYSTEM_HEADER = 64  # bytes that sharing strategy file_system puts in front of each storage

DTYPE_BYTES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "uint16": 2,
    "int16": 2,
    "float16": 2,
    "bfloat16": 2,
    "uint32": 4,
    "int32": 4,
    "float32": 4,
    "complex32": 4,
    "uint64": 8,
    "int64": 8,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}


class BatchPages(NamedTuple):
    """One batch in whole pages: `unit` bytes in all (U), `largest` storage (M), number of `tensors`."""

    unit: int
    largest: int
    tensors: int


NO_TENSORS = BatchPages(0, 0, 0)


@functools.lru_cache(maxsize=64)  # a plan asks for each loader's ten times, and each target's plan again
def batch_pages(loader: LoaderSpec, page: int, *, file_system: bool) -> BatchPages:
    """Return the pages of one batch on a host with `page` bytes a page; nothing where no sample was given."""
    if loader.collate == "none":
        return NO_TENSORS  # numpy arrays and strings go through the worker's pipe
    header = FILE_SYSTEM_HEADER if file_system else 0
    if loader.batch_bytes is not None:
        return _measured_batch(loader.batch_bytes, page, header)
    terms = [(round_up(size + header, page), copies) for size, copies in _storages(loader) if size]
    return BatchPages(
        unit=sum(pages * copies for pages, copies in terms),
        largest=max((pages for pages, _ in terms), default=0),
        tensors=sum(copies for _, copies in terms),
    )


def _storages(loader: LoaderSpec) -> list[tuple[int, int]]:
    """Return (bytes, copies) of each storage: those measured; else one a tensor, and in a list one a sample."""
    if loader.storages is not None:
        return [(size, 1) for size in loader.storages]
    samples = loader.batch_size or 1
    stacked = loader.collate == "stack"
    return [
        (tensor_bytes * samples, 1) if stacked else (tensor_bytes, samples)
        for tensor_bytes in (math.prod(each.shape) * DTYPE_BYTES[each.dtype] for each in loader.sample or ())
    ]


def _measured_batch(batch: BatchBytes, page: int, header: int) -> BatchPages:
    """Return the most pages that `size` bytes in `tensors` storages can take, since only their sum is known."""
    if not batch.size:
        return NO_TENSORS
    in_all = batch.size + header * batch.tensors
    unit = ((in_all - batch.tensors) // page + batch.tensors) * page
    largest = round_up(in_all - (batch.tensors - 1), page)
    return BatchPages(unit, largest, batch.tensors)
