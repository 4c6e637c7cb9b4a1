"""Generators of random numbers that give the same numbers in all workers, or in each epoch."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from trainlaunch.inside.probe.base.dataset_objects import reachable_objects
from trainlaunch.inside.probe.base.digest import states
from trainlaunch.inside.probe.base.isolation import run_in_fork
from trainlaunch.inside.probe.base.loader_stats import LoaderStats, once_per_loader
from trainlaunch.inside.probe.base.own_loaders import first_indices, trial_loader

DRAWS_SECONDS = 60.0
FEW = 8  # indices, among which another is found where a sampler gives some of them twice
if TYPE_CHECKING:  # Python 3.8 doesn't know such an alias
    # How far a generator came: [before the first fetch, after it, after the same sample was fetched once more, after
    # another one was, if there is one]. The global ones are moved on before the last.
    Course = list[str]
GLOBAL = ("numpy.random", "random", "torch")
SEEDING_SECONDS = 10.0
MAX_PATHS = 10  # that are named
SEEDED_GLOBALS = ("numpy.random", "random")


class Draws(NamedTuple):
    """The course of each generator in two workers in each of two epochs: `epochs[1][0]["dataset.rng"]`."""

    epochs: list[list[dict[str, Course]]]

    def advancing(self) -> Iterator[str]:
        """Yield the paths of those that each fetch moves on; one that is seeded from the index stays where it is."""
        passed = set()
        for path, (before, once, twice, *_) in self.epochs[0][0].items():
            if once not in (before, twice) and (before, once, twice) not in passed:
                passed.add((before, once, twice))  # or the same generator would count by each of its names
                yield path

    def sown(self) -> Iterator[str]:
        """Yield the global generators that each sample seeds, and every one alike."""
        mine, other = self.epochs[0]
        for path in GLOBAL:
            before, *after = mine.get(path, [""])
            alike = len(after) == 3 and {*after, *other.get(path, [""])[1:]} == {after[0]}
            if alike and after[0] != before:
                yield path


class _Watcher:
    """The collate_fn and worker_init_fn of a trial: returns the states of generators instead of a batch."""

    def __init__(self, seen: LoaderStats) -> None:
        self.init, self.collate = seen.worker_init_fn, seen.collate_fn
        self.states: dict[str, str] = {}
        self.fetched = 0

    def start(self, worker: int) -> None:
        if self.init is not None:
            self.init(worker)
        self.states = self._states()

    def __call__(self, data: Any) -> Any:
        with contextlib.suppress(Exception):  # a collate_fn may want more samples than one
            self.collate(data)  # it may draw too
        before, self.states = self.states, self._states()
        self.fetched += 1
        if self.fetched == 2:
            _move_on()  # or it couldn't be told from one that the first sample alone has moved
        return before, self.states

    def _states(self) -> dict[str, str]:
        from torch.utils.data import get_worker_info

        return states(get_worker_info().dataset, self.collate)


@once_per_loader
def draws(seen: LoaderStats) -> Draws:
    """Return what two workers draw in two epochs; measured once a loader. Raises what `apart` raises."""
    return Draws(run_in_fork(lambda: [_epoch(seen, number) for number in range(2)], DRAWS_SECONDS))


def _epoch(seen: LoaderStats, number: int) -> list[dict[str, Course]]:
    for each in reachable_objects(seen.dataset):
        set_epoch = getattr(each.value, "set_epoch", None)
        if callable(set_epoch):
            set_epoch(number)
    first, *more = first_indices(seen, FEW)  # the script has read those like it; a random one may be what raises
    others, watcher = [each for each in more if each != first], _Watcher(seen)
    asked = [*([[first]] * 4), *([others[:1]] * (2 if others else 0))]
    given = list(trial_loader(seen, 2, watcher, watcher.start, asked))  # by turns: of worker 0, of worker 1
    return [_courses(*given[worker::2]) for worker in range(2)]


def _courses(first: Any, *others: Any) -> dict[str, Course]:
    every = (*first, *(after for _, after in others))
    return {path: [each[path] for each in every] for path in first[0] if all(path in each for each in every)}


def _move_on() -> None:
    random.random()  # noqa: S311 - nobody uses it
    sys.modules["torch"].rand(1)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.random()


def repeated_augmentation(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield one finding of generators that start equal in all workers, move on with each sample, and stay equal."""
    if seen.iterable or not seen.trained:
        return
    found = draws(seen)
    first, second = found.epochs[0]
    advancing = list(found.advancing())
    equal = [path for path in advancing if second.get(path, [])[:3] == first[path][:3]]
    for path in found.sown():
        yield _facts(seen, path, first[path], "each sample")
    if equal:
        yield {**_facts(seen, equal[0], first[equal[0]], "equal"), "others": equal[1:MAX_PATHS]}
    if seen.worker_init_fn is not None:
        ignoring = run_in_fork(lambda: _ignoring(seen), SEEDING_SECONDS)
        for path in ignoring:
            if path in advancing and second.get(path) != first[path]:
                yield _facts(seen, path, first[path], "low bits")


def _facts(seen: LoaderStats, path: str, course: list[str], how: str) -> dict[str, Any]:
    kind = course[0].split(" ")[0]
    return {"generator": path, "class": kind, "how": how, "num_workers": seen.num_workers}


def _ignoring(seen: LoaderStats) -> list[str]:
    """Return the global generators that worker_init_fn seeds from torch's seed, but not from its low 32 bits."""
    seeds = [high * 2**32 + low for high in (5, 6) for low in (7, 8, 2**31)]
    starts = [_start(seen, seed) for seed in seeds]
    return [
        path
        for path in SEEDED_GLOBALS
        if path in starts[0] and len({each[path] for each in starts[:3]}) == 1 and starts[0][path] != starts[3][path]
    ]


def _start(seen: LoaderStats, seed: int) -> dict[str, str]:
    """Return the states of generators after worker_init_fn in a worker 0 whose seed is `seed`."""
    from torch.utils.data._utils import worker

    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    torch.manual_seed(seed)
    worker._worker_info = worker.WorkerInfo(id=0, num_workers=2, seed=seed, dataset=seen.dataset)
    seen.worker_init_fn(0)
    return states()


def repeated_epochs(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield one finding of generators that begin each epoch where they began the first; not of workers that live on."""
    if seen.iterable or not seen.trained or seen.persistent_workers:
        return
    found = draws(seen)
    first, second = (epoch[0] for epoch in found.epochs)
    equal = [path for path in found.advancing() if second.get(path, [])[:3] == first[path][:3]]
    if equal:
        kind = first[equal[0]][0].split(" ")[0]
        facts = {"generator": equal[0], "class": kind, "others": equal[1:MAX_PATHS]}
        yield {**facts, "num_workers": seen.num_workers}


def epoch_never_set(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield one finding of a DistributedSampler that shuffled all epochs that were seen alike."""
    orders = [each for each in seen.orders if each is not None]
    if seen.trained and len(orders) > 1 and len(set(orders)) == 1:
        yield {"epoch": orders[0][1], "epochs": len(orders)}
