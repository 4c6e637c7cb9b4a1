"""Single samples that raise, are None or hold nothing but zeros, and last batches that training or evaluation miss."""

from __future__ import annotations

import copy
import itertools
import re
import sys
import traceback
from collections.abc import Iterator
from typing import Any, NamedTuple

from trainlaunch.inside.code_places import frame_of_script
from trainlaunch.inside.probe.base.dataset_objects import is_array, parts, reachable_objects
from trainlaunch.inside.probe.base.loader_stats import LoaderStats, once_per_loader
from trainlaunch.inside.probe.base.own_loaders import is_shuffled, samples_of_last_batch
from trainlaunch.inside.probe.base.sampling import Sample, read, samples
from trainlaunch.inside.probe.base.training_hooks import batchnorm_inputs, values_of_channel

COUNT = 64
_WORKER_SECONDS = 15
NAMED = 8  # indices that a finding names
MAX_PARTS = 64  # of a sample that are looked at
MIN_ELEMENTS = 16  # elements of what can be called empty: a label or a short vector may well be 0
ZERO, BLANK, VARIED, ONE_VALUE = "zero", "blank", "varied", "one value"


class Content(NamedTuple):
    """One sample that was read, and what its largest array is like; None where it has none of that size."""

    sample: Sample
    content: str | None


@once_per_loader
def _read(seen: LoaderStats) -> list[Sample]:
    """Return the samples that were read of a loader, once for all checks."""
    return list(samples(seen, COUNT))


def sample_exception(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield what reading a sample raises: the exception itself, which a worker's may hide."""
    found = _read(seen)
    failed = [each for each in found if each.error is not None]
    error = failed[0].error if failed else None
    if error is not None and (seen.num_workers == 0 or _fails_in_worker(seen, failed[0].index)):
        yield {**_facts(failed, found), **facts_of_error(error)}


def _fails_in_worker(seen: LoaderStats, index: Any) -> bool:
    """Whether a worker meets it too: some datasets are made ready by worker_init_fn, and can't be read elsewhere."""
    chosen = {"sampler": [index]} if seen.batch_sampler is None else {"batch_sampler": [[index]]}
    own = seen.similar(1, collate_fn=nothing_of, timeout=_WORKER_SECONDS, **({} if seen.iterable else chosen))
    try:
        for _ in itertools.islice(own, index + 1 if seen.iterable else 1):
            pass
    except Exception:  # torch's copy of it
        return True
    return False


def nothing_of(_samples: Any) -> int:
    """Take the place of a collate_fn where only the reading matters; spawned workers find it by its name."""
    return 0


def facts_of_error(error: BaseException) -> dict[str, Any]:
    """Return an exception's class, text and place in the script, and whether torch can raise it again in main."""
    frame = frame_of_script(error.__traceback__)
    return {
        "error": type(error).__name__,
        "message": "".join(traceback.format_exception_only(type(error), error)).partition(":")[2].strip()[:500],
        "at": frame.at,
        "function": frame.function,
        "raised_again": can_be_raised_again(error),
    }


def can_be_raised_again(error: BaseException) -> bool:
    """Whether the class takes one string, out of which torch builds a worker's exception in the main process."""
    try:
        type(error)("text")
    except Exception:  # whatever such a constructor does
        return False
    return True


def none_sample(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield a sample that is None, or has a part that is, where the loader's collate_fn can't take that."""
    read_well = [each for each in _read(seen) if each.error is None]
    missing = [(each, path) for each in read_well for path in [_path_of_none(each.value)] if path is not None]
    for sample, path in missing[:1]:
        if _collate_fails(seen, sample, read_well):
            yield {**_facts([each for each, _ in missing], read_well), "path": path}


def _path_of_none(value: Any, path: str = "sample") -> str | None:
    if value is None:
        return path
    paths = (_path_of_none(each, path + suffix) for suffix, each in itertools.islice(parts(value), MAX_PARTS))
    return next((found for found in paths if found is not None), None)


def _collate_fails(seen: LoaderStats, missing: Sample, others: list[Sample]) -> bool:
    """Whether the loader's own collate_fn can't take such a sample; many leave it out of a batch."""
    whole = next((each for each in others if _path_of_none(each.value) is None), missing)
    batched = seen.batch_sampler is not None or bool(seen.batch_size)
    with_it, without = ([whole, missing], [whole, whole]) if batched else ([missing], [whole])
    return _fails(seen, with_it) and (whole is missing or not _fails(seen, without))


def _fails(seen: LoaderStats, chosen: list[Sample]) -> bool:
    """Whether collate_fn raises for samples that are read for it alone: it may change them, and the same one twice."""
    batched = seen.batch_sampler is not None or bool(seen.batch_size)
    data = [_fresh(seen, each) for each in chosen]
    try:
        seen.collate_fn(data if batched else data[0])
    except Exception:  # the script's own
        return True
    return False


def _fresh(seen: LoaderStats, sample: Sample) -> Any:
    """Return a sample's value once more: read again, or of a stream copied."""
    if not seen.iterable:
        again = read(seen.dataset, sample.index, seen.batch_sampler is not None)
        return sample.value if again.error is not None else again.value
    try:
        return copy.deepcopy(sample.value)
    except Exception:  # what can't be copied is used as it is
        return sample.value


def zero_sample(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield samples whose largest array holds one value, where others hold many: a file that could not be read, say."""
    read_well = [each for each in _read(seen) if each.error is None]
    contents = [Content(each, content_of(each.value)) for each in read_well]
    known = [each for each in contents if each.content is not None]
    bare = [each for each in known if each.content in (ZERO, BLANK)]
    others = [each for each in known if each.content not in (ZERO, BLANK)]
    if not bare:
        return
    if others:  # beside samples that are one value each, one of zeros is nothing special
        if 2 * sum(each.content == VARIED for each in others) <= len(others):
            return
    elif any(each.content == BLANK for each in bare) or not _comes_from_file(seen, bare):
        return  # made up
    yield {**_facts([each.sample for each in bare], read_well), "content": bare[0].content}


def _comes_from_file(seen: LoaderStats, found: list[Content]) -> bool:
    if any(each.sample.file for each in found):
        return True
    kinds = {each.__name__ for held_ in reachable_objects(seen.dataset) for each in type(held_.value).__mro__}
    return bool(kinds & {"memmap", "HLObject", "BufferedReader", "FileIO"})


def content_of(value: Any) -> str | None:
    """Return what the largest array of a sample holds; None where none has FEWEST elements."""
    arrays = [(size, each) for each in _arrays(value) for size in [_size(each)] if size >= MIN_ELEMENTS]
    if not arrays:
        return None
    array = max(arrays, key=lambda each: each[0])[1]
    if not bool((array != 0).any()):
        return ZERO
    if _is_one_value(array):
        return BLANK if array.ndim >= 3 else ONE_VALUE
    channels = array if array.ndim == 3 and array.shape[0] <= 4 else None
    if channels is None and array.ndim == 3 and array.shape[2] <= 4:
        channels = [array[:, :, each] for each in range(array.shape[2])]
    return BLANK if channels is not None and all(_is_one_value(each) for each in channels) else VARIED


def _is_one_value(array: Any) -> bool:
    return bool((array == array.reshape(-1)[0]).all())


def _size(array: Any) -> int:
    size = array.size
    return int(size) if isinstance(size, int) else int(array.numel())


def _arrays(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the tensors and NumPy arrays of a sample; an image of PIL, and bytes, as an array."""
    inner, numpy = parts(value), sys.modules.get("numpy")
    if inner:
        for _, each in inner[:MAX_PARTS] if depth < 6 else ():
            yield from _arrays(each, depth + 1)
    elif hasattr(value, "getextrema") and hasattr(value, "tobytes"):
        if numpy is not None:
            yield numpy.asarray(value)
    elif isinstance(value, (bytes, bytearray)):
        if numpy is not None:
            yield numpy.frombuffer(value, "uint8")
    elif is_array(value) and not re.match("object|[<>|=]?[USMmO]", str(value.dtype)):
        yield value


def _facts(found: list[Sample], tried: list[Sample]) -> dict[str, Any]:
    return {
        "index": _shown(found[0].index),
        "file": found[0].file,
        "indices": [_shown(each.index) for each in found[:NAMED]],
        "found": len(found),
        "tried": len(tried),
    }


def _shown(index: Any) -> Any:
    return index if isinstance(index, (int, str)) else repr(index)[:100]


def batchnorm_last_batch(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield one finding where a layer in training mode got no more values for a channel than the batch had samples."""
    if seen.iterable or not seen.trained or seen.batch_sampler is None:
        return
    sizes = {each.samples for each in seen.fetched} | {seen.batch_size}
    layers = sorted(
        {kind for kind, shape in batchnorm_inputs if shape[0] in sizes and values_of_channel(shape) == shape[0]}
    )
    if layers and not seen.drop_last and samples_of_last_batch(seen) == 1:
        yield {"layers": layers[:3], "batch_size": seen.batch_size, "samples": len(seen.batch_sampler.sampler)}


def validation_drop_last(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield one finding for a loader that never trains, isn't shuffled, and drops some of its samples."""
    sampler = seen.batch_sampler
    if seen.iterable or seen.trained or not getattr(sampler, "drop_last", False) or is_shuffled(seen):
        return
    dropped = samples_of_last_batch(seen)
    if dropped:
        samples = len(sampler.sampler)
        yield {"samples": samples, "dropped": dropped, "batch_size": sampler.batch_size, "ran": seen.order is not None}
