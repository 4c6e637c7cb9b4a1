"""Generators of random numbers of a map-style dataset, over two epochs with workers that start anew."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from trainlaunch.inside.probe.base.dataset_objects import held
from trainlaunch.inside.probe.base.digest import states
from trainlaunch.inside.probe.base.fork_copy import apart
from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.own_loaders import first_indices, trial_loader

SECONDS = 60.0
FEW = 8  # indices, among which another is found where a sampler gives some of them twice
if TYPE_CHECKING:  # Python 3.8 doesn't know such an alias
    # How far a generator came: [before the first fetch, after it, after the same sample was fetched once more, after
    # another one was, if there is one]. The global ones are moved on before the last.
    Course = list[str]
GLOBAL = ("numpy.random", "random", "torch")


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

    def __init__(self, seen: Seen) -> None:
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


_known: dict[int, tuple[Seen, Draws]] = {}  # with what is seen, or another could get its id


def draws(seen: Seen) -> Draws:
    """Return what two workers draw in two epochs; measured once a loader. Raises what `apart` raises."""
    key = id(seen)
    if key not in _known:
        _known[key] = seen, Draws(apart(lambda: [_epoch(seen, number) for number in range(2)], SECONDS))
    return _known[key][1]


def _epoch(seen: Seen, number: int) -> list[dict[str, Course]]:
    for each in held(seen.dataset):
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
