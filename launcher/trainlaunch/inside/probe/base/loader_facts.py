"""What was seen, as the facts of records."""

from __future__ import annotations

import math
import multiprocessing
import os
import platform
import statistics
from typing import Any

import torch

from trainlaunch.inside.probe.base.loader_stats import LoaderStats, length_of
from trainlaunch.inside.probe.base.transfer import Weight, for_child, walk, weigh

_BOUND = 3  # times that a number comes up before it is one
_WHOLE = 0.02  # of a batch: a label or a loss that is kept is no batch


def start() -> dict[str, Any]:
    """Return the facts of this process."""
    world = os.environ.get("WORLD_SIZE", "")
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "world": int(world) if world.isascii() and world.isdigit() else 1,
        "start_method": _default_start_method(),
    }


def loader(seen: LoaderStats, trains: bool) -> dict[str, Any]:
    """Return how a loader was built."""
    return {
        "loader": seen.number,
        "at": seen.place,
        "class": _name(seen.kind),
        "order": seen.order,
        "trains": trains,
        "batch_size": seen.batch_size,
        "num_workers": seen.num_workers,
        "prefetch_factor": seen.prefetch_factor,
        "pin_memory": seen.pin_memory,
        "persistent_workers": seen.persistent_workers,
        "drop_last": seen.drop_last,
        "timeout": seen.timeout,
        "start_method": start_method(seen),
        "dataset": _name(type(seen.dataset)),
        "length": length_of(seen.dataset),
        "epoch_batches": seen.epoch_batches,
        "iterable": seen.iterable,
        "sampler": _name(type(seen.sampler)),
        "collate": _name(seen.collate_fn),
    }


def batches(seen: LoaderStats) -> dict[str, Any]:
    """Return what a loader's batches weigh, and how the script takes them."""
    measured = [each for each in seen.fetched if not each.problem]
    largest = max((each for each in measured if each.storages is not None), key=lambda each: each.pages, default=None)
    return {
        "loader": seen.number,
        "count": seen.batches,
        "measured": len(measured),
        "problem": next((each.problem for each in seen.fetched if each.problem), None),
        "storages": largest.storages if largest else None,
        "tensors": len(largest.storages or ()) if largest else None,
        "largest_bytes": max((each.size for each in measured), default=None),
        "median_bytes": _median([each.size for each in measured]),
        "pickled_bytes": max((each.pickled for each in measured), default=None),
        "batches_held": batches_held(seen),
        "batches_kept": batches_kept(seen),
        "iterators": seen.iterators,
        "passes": len(seen.passes),
        "fetch_seconds": _median([each.fetch_seconds for each in seen.fetched]),
        "collate_seconds": _median([each.collate_seconds for each in seen.fetched]),
        "wait_seconds": _median(seen.waits),
        "step_seconds": _median(seen.steps),
        "together_with": sorted(seen.together),
        "whole_epochs": len(seen.whole),
        "ended": len(seen.whole) + seen.cut,
    }


def batches_held(seen: LoaderStats) -> int | None:
    """Return how many batches the script holds at most when one comes, that one included; None before a second one.

    Beside other loaders it is how many are held at the moment when all take most. A most that came up once or twice is
    a draw, as of a shuffle buffer, and others will be larger: it is given one standard deviation more. Without workers,
    batches may be views of the dataset, which holds them itself: those don't count.
    """
    series = seen.held.series
    if len(series) < 2 and not (series and seen.together):
        return None
    most = max(*series, 1 + seen.held.alive())
    if most > 2 + _WHOLE and not seen.num_workers:
        owned: set[int] = set()
        walk(seen.dataset, lambda storage: owned.add(storage._cdata))
        most = 1 + seen.held.alive(frozenset(owned))
    elif seen.together:
        most = seen.fullest[1]
    elif sum(each > most - _WHOLE for each in series) < _BOUND:
        most += statistics.pstdev(series[len(series) // 2 :])
    return max(1, math.ceil(most - _WHOLE))


def batches_kept(seen: LoaderStats) -> int | None:
    """Return how many batches are still held after a loop has ended, None where no loop began after one."""
    return None if seen.kept is None else math.ceil(seen.kept - _WHOLE)


def dataset(seen: LoaderStats) -> dict[str, Any]:
    """Return what pickle moves of a dataset to each worker where it isn't forked; nothing where it can't be pickled."""
    try:
        with for_child():
            weight = weigh(seen.dataset)
    except Exception:  # a finding of its own; forked workers get it all the same
        weight = Weight([], 0)
    sizes = {"tensor_bytes": weight.pages, "tensors": len(weight.storages), "pickled_bytes": weight.pickled}
    return {"loader": seen.number, **sizes}


def start_method(seen: LoaderStats) -> str:
    """Return how the loader starts its workers, or would."""
    return str(seen.context.get_start_method()) if seen.context is not None else _default_start_method()


def _default_start_method() -> str:
    """Return this process's own; to ask for its context would settle it, and the script may still choose one."""
    return multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]


def _median(values: list[Any]) -> Any:
    return statistics.median(values) if values else None


def _name(thing: Any) -> str:
    module, name = getattr(thing, "__module__", ""), getattr(thing, "__qualname__", type(thing).__qualname__)
    return name if module in {"builtins", "__main__", None} else f"{module}.{name}"
