"""What can be wrong with a loader: one function for each defect, which runs after the script's last batch.

A function gets what was seen of one loader and yields the facts of each thing that it finds. It runs in the process,
and mostly in the thread, that iterated the loader, and that ends afterwards: it may build loaders and change anything.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from trainlaunch.inside.probe.base.isolation import CheckTimeout, limited
from trainlaunch.inside.probe.base.loader_stats import LoaderStats


class Check(NamedTuple):
    """`function(seen)` of `module`, a module of this package, yields what it finds of `defect` within `seconds`.

    Without one it is called as the defect, with underscores. One that `starts_workers` of the loader is off where those
    were seen to hang: its own would hang too, until its time is over.
    """

    defect: str
    module: str
    seconds: float = 20.0
    function: str = ""
    starts_workers: bool = False

    def load(self) -> Callable[[LoaderStats], Iterable[dict[str, Any]]]:
        """Return the function; its module is loaded with the first of its checks."""
        module = importlib.import_module(f"{__name__}.{self.module}")
        loaded: Callable[[LoaderStats], Iterable[dict[str, Any]]] = getattr(
            module, self.function or self.defect.replace("-", "_")
        )
        return loaded


CHECKS: tuple[Check, ...] = (
    Check("worker-hang", "worker_failures"),
    Check("threads-before-fork", "worker_start"),
    Check("kept-batches", "memory_growth"),
    Check("stale-dataset", "worker_start"),
    Check("unpicklable", "worker_failures"),
    Check("copy-on-write-growth", "memory_growth"),
    Check("in-memory-dataset", "memory_growth"),
    Check("worker-dependent-samples", "worker_samples", 60.0, starts_workers=True),
    Check("repeated-augmentation", "draws", 60.0, starts_workers=True),
    Check("repeated-epochs", "draws", 60.0, starts_workers=True),
    Check("epoch-never-set", "draws"),
    Check("unsharded-iterable", "worker_samples", 60.0, starts_workers=True),
    Check("idle-workers", "worker_samples", 60.0, starts_workers=True),
    Check("batchnorm-last-batch", "samples"),
    Check("validation-drop-last", "samples"),
    Check("iterators-rebuilt", "lost_time", 60.0, starts_workers=True),
    Check("no-persistent-workers", "lost_time", 60.0, starts_workers=True),
    Check("no-pin-memory", "lost_time"),
    Check("slow-collate", "lost_time"),
    Check("padding-waste", "padding_waste", 30.0, starts_workers=True),
    # Those that read samples in this process come last: what they open is open in workers that are forked afterwards.
    Check("cache-per-rank", "memory_growth"),
    Check("handle-in-init", "handle_in_init"),
    Check("sample-exception", "samples", 40.0),
    Check("none-sample", "samples"),
    Check("zero-sample", "samples"),
    Check("unpicklable", "worker_failures", function="unpicklable_batch"),
)


def run(
    loaders: Iterable[LoaderStats], checks: tuple[Check, ...] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (kind, facts) of records: `finding` of each that is found, `off` of each check that raised or was late."""
    loaders = list(loaders)
    hanging: set[int] = set()
    for check in CHECKS if checks is None else checks:
        for seen in loaders:
            for kind, facts in _found(check, seen, check.starts_workers and seen.number in hanging):
                if (kind, check.defect) == ("finding", "worker-hang"):
                    hanging.add(seen.number)
                yield kind, facts


def _found(check: Check, seen: LoaderStats, hangs: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    stated = {"defect": check.defect, "loader": seen.number, "place": seen.place}
    if hangs:
        yield "off", {**stated, "reason": "it starts workers, and this loader's hang"}
        return
    found: list[dict[str, Any]] = []
    try:
        with limited(check.seconds):
            for facts in check.load()(seen):
                found.append(facts)
        problem = ""
    except CheckTimeout:
        problem = f"not done after {check.seconds:g} s"
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # the script's own code may raise anything
        problem = f"{type(error).__name__}: {error}"
    yield from (("finding", {**stated, "facts": facts}) for facts in found)
    if problem:
        yield "off", {**stated, "reason": problem[:500]}
