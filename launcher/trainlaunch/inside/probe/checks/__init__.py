"""What can be wrong with a loader: one function for each defect, which runs after the script's last batch.

A function gets what was seen of one loader and yields the facts of each thing that it finds. It runs in the process,
and mostly in the thread, that iterated the loader, and that ends afterwards: it may build loaders and change anything.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from trainlaunch.inside.probe.base.limits import Late, limited
from trainlaunch.inside.probe.base.loader_stats import Seen


class Check(NamedTuple):
    """`function(seen)` of `module`, a module of this package, yields what it finds of `defect` within `seconds`."""

    defect: str
    module: str
    function: str = "check"
    seconds: float = 20.0


CHECKS: tuple[Check, ...] = (
    Check("worker-hang", "worker_hang"),
    Check("threads-before-fork", "threads_before_fork"),
    Check("kept-batches", "kept_batches"),
    Check("stale-dataset", "stale_dataset"),
    Check("unpicklable", "unpicklable"),
    Check("copy-on-write-growth", "memory", "growth"),
    Check("in-memory-dataset", "memory", "copies"),
    Check("worker-dependent-samples", "worker_dependent_samples", seconds=60.0),
    Check("repeated-augmentation", "repeated_augmentation", seconds=60.0),
    Check("repeated-epochs", "repeated_epochs", seconds=60.0),
    Check("unsharded-iterable", "unsharded_iterable", seconds=60.0),
    Check("idle-workers", "idle_workers", seconds=60.0),
    Check("batchnorm-last-batch", "batchnorm_last_batch"),
    Check("validation-drop-last", "validation_drop_last"),
    Check("iterators-rebuilt", "iterators_rebuilt", seconds=60.0),
    Check("no-persistent-workers", "no_persistent_workers", seconds=60.0),
    Check("no-pin-memory", "no_pin_memory"),
    Check("slow-collate", "slow_collate"),
    Check("padding-waste", "padding_waste", seconds=30.0),
    # Those that read samples in this process come last: what they open is open in workers that are forked afterwards.
    Check("cache-per-rank", "caching"),
    Check("handle-in-init", "handle_in_init"),
    Check("sample-exception", "samples", "raised", 40.0),
    Check("none-sample", "samples", "none"),
    Check("zero-sample", "samples", "empty"),
    Check("unpicklable", "unpicklable", "batch"),
)


def run(loaders: Iterable[Seen], checks: tuple[Check, ...] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (kind, facts) of records: `finding` of each that is found, `off` of each check that raised or was late."""
    loaders = list(loaders)
    for check in CHECKS if checks is None else checks:
        for seen in loaders:
            yield from _found(check, seen)


def _found(check: Check, seen: Seen) -> Iterator[tuple[str, dict[str, Any]]]:
    stated = {"defect": check.defect, "loader": seen.number, "place": seen.place}
    found: list[dict[str, Any]] = []
    try:
        with limited(check.seconds):
            module = importlib.import_module(f"{__name__}.{check.module}")
            for facts in getattr(module, check.function)(seen):
                found.append(facts)
        problem = ""
    except Late:
        problem = f"not done after {check.seconds:g} s"
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # the script's own code may raise anything
        problem = f"{type(error).__name__}: {error}"
    yield from (("finding", {**stated, "facts": facts}) for facts in found)
    if problem:
        yield "off", {**stated, "reason": problem[:500]}
