"""Follows the script's loops over its loaders, from torch's own iterators."""

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref
from typing import Any

import torch

from trainlaunch.inside.code_places import caller
from trainlaunch.inside.probe.base.loader_stats import Fetched, LoaderStats, length_of, notice
from trainlaunch.inside.probe.base.own_loaders import distributed_order, is_shuffled
from trainlaunch.inside.probe.base.training_hooks import watch_batchnorm
from trainlaunch.inside.probe.base.worker_results import Results

_INDICES = 4096  # of a sampler that are compared
_AS_IF_TWO = 4  # batches: two workers that prefetch two each


class Pass:
    """One iterator of a loader, from its first batch to its last; a persistent one begins again."""

    def __init__(self, seen: LoaderStats) -> None:
        self.seen = seen
        self.open = False
        self.ended = False
        self.count = 0
        self.returned_at: float | None = None


class Loops:
    """All loaders that this process has built, and the iterators that are alive; not those it was forked with."""

    def __init__(self, parent: Loops | None = None) -> None:
        self.pid = os.getpid()
        self.seen: list[LoaderStats] = []
        self.results = Results()
        self.results_opened = False
        self._places: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._inherited = weakref.WeakSet(parent._places if parent else ())
        self._passes: weakref.WeakKeyDictionary[Any, Pass] = weakref.WeakKeyDictionary()
        self._pending: list[Pass] = []
        self._inside = threading.local()  # .stack: whose __next__ this thread is in
        self.paused = False  # checks build iterators of their own

    def built(self, loader: Any) -> None:
        """Note where the script builds a loader."""
        self._places[loader] = caller()

    def never_iterated(self, alive: list[Any]) -> list[LoaderStats]:
        """Return those of `alive` that no loop has read, numbered on: beside which others they run was not seen.

        A library builds a script's loader anew, over the same dataset: that is no other loader.
        """
        touched = [dataset for each in self.seen for dataset in (each.dataset, getattr(each.dataset, "dataset", None))]
        own = (each for each in alive if each not in self._inherited)
        found = [each for each in own if not any(each.dataset is one for one in touched) or self._is_other_part(each)]
        numbered = enumerate(found, start=len(self.seen))
        return [LoaderStats(number, each, self._places.get(each, "")) for number, each in numbered]

    def _is_other_part(self, loader: Any) -> bool:
        """Whether a loader shares a dataset with those that ran, and takes other samples, or takes them otherwise."""
        same, own = [each for each in self.seen if each.dataset is loader.dataset], LoaderStats(0, loader, "")
        return bool(same) and all(
            _are_apart(each.sampler, own.sampler) or _batches_otherwise(each, own) for each in same
        )

    def begins(self, iterator: Any, loader: Any) -> None:
        """Note that an iterator is built, unless the dataset or a check of ours builds it."""
        if self.paused or any(each is not None for each in self._stack()):
            return
        if not self.results_opened:
            self.results.open()
            self.results_opened = True
        seen = self._seen_of(loader)
        if not seen.iterators:
            notice(seen)
        seen.iterators += 1
        self._note_kept(seen)
        self._passes[iterator] = Pass(seen)

    def _open(self) -> set[LoaderStats]:
        """Return the loaders whose loops have not ended."""
        return {each.seen for each in list(self._passes.values()) if each.open}

    def _note_kept(self, beginning: LoaderStats) -> None:
        """Note what is held of loops that have ended: workers that are forked now inherit it.

        Persistent ones keep what is held of loops that go on, too.
        """
        running = set() if beginning.persistent_workers else self._open()
        for each in self.seen:
            if each.passes and each not in running:
                each.kept = max(each.kept or 0.0, each.held.alive())

    def _seen_of(self, loader: Any) -> LoaderStats:
        """Return what is known of a loader: the same one, the one that this one replaces, or a new one."""
        place = self._places.get(loader) or caller()
        for each in self.seen:
            if each.loader is loader:
                return each
        busy = self._open()
        for each in self.seen:
            if (each.loader is None or each not in busy) and _replaces(loader, each, place):
                each.take(loader)
                return each
        new = LoaderStats(len(self.seen), loader, place)
        new.order = len(self.seen)
        self.seen.append(new)
        return new

    def enters(self, iterator: Any) -> Pass | None:
        """Note that a batch is asked for; None where the iterator isn't one of the script's own loops."""
        found = None if self.paused or self.pid != os.getpid() else self._passes.get(iterator)
        self._stack().append(found)
        if found is None:
            return None
        now = time.monotonic()
        if found.returned_at is not None:
            found.seen.steps.append(now - found.returned_at)
            found.returned_at = None
        found.seen.waiting_since = now
        found.seen.pids.update({each.pid: number for number, each in enumerate(getattr(iterator, "_workers", ()))})
        if not found.open:
            self._opens(found)
        return found

    def _opens(self, opened: Pass) -> None:
        for each in list(self._passes.values()):
            if each.open and each.seen is not opened.seen:
                each.seen.together.add(opened.seen.number)
                opened.seen.together.add(each.seen.number)
        if opened.ended:
            self._note_kept(opened.seen)
        opened.open = True
        opened.count = 0
        opened.seen.passes.append(0)
        opened.seen.orders.append(distributed_order(opened.seen))

    def leaves(self) -> None:
        """Note that __next__ is left, however."""
        found = self._stack().pop()
        if found is not None:
            found.seen.waiting_since = None

    def returns(self, found: Pass, batch: Any, waited: float) -> None:
        """Note a batch that the script gets."""
        found.count += 1
        found.seen.passes[-1] += 1
        found.seen.waits.append(waited)
        if torch.is_grad_enabled():
            found.seen.with_grad += 1
            if found.seen.with_grad == 1:
                watch_batchnorm()
            self._pending.append(found)
        found.returned_at = time.monotonic()
        try:
            found.seen.held.comes(batch)
        except Exception:
            return  # what can't be pickled is a check's business
        self._note_moment()

    def _note_moment(self) -> None:
        """Note how much is in flight and held of all loaders together."""
        alive = {each: each.held.alive() for each in self.seen}
        running = [
            (each.seen, _outstanding(iterator, each)) for iterator, each in list(self._passes.items()) if each.open
        ]
        total = sum(count * each.held.size for each, count in alive.items())
        total += sum(count * each.held.size for each, count in running)
        for each, _ in running:
            each.fullest = max(each.fullest, (total, alive[each]))

    def ends(self, found: Pass, cut: bool = False) -> None:
        """Note that a loop has come to its end: its own, or `cut` by us."""
        if cut:
            found.seen.cut += 1
        else:
            found.seen.whole.append(found.count)
        found.open, found.ended = False, True
        self._pending = [each for each in self._pending if each is not found]

    def trains(self) -> None:
        """Note a backward or a step: it belongs to all loops that got a batch since the last one."""
        pending, self._pending = self._pending, []
        for each in pending:
            each.seen.trained += 1

    def fetched(self, fetched: Fetched) -> None:
        """Take what was measured of a batch: here without workers, else for the process that reads the file."""
        if fetched.worker >= 0:
            self.results.add(fetched)
            return
        stack = self._stack()
        if stack and stack[-1] is not None:
            stack[-1].seen.fetched.append(fetched)

    def collect(self) -> None:
        """Take what workers have measured so far."""
        if not self.results_opened:
            return
        owners = {pid: each for each in self.seen for pid in each.pids}
        for fetched in self.results.read():
            if fetched.pid in owners:
                owners[fetched.pid].fetched.append(fetched)

    def _stack(self) -> list[Pass | None]:
        if not hasattr(self._inside, "stack"):
            self._inside.stack = []
        stack: list[Pass | None] = self._inside.stack
        return stack


def _replaces(loader: Any, seen: LoaderStats, place: str) -> bool:
    """Return whether a script that builds its loaders anew for each epoch would build this one after that one."""
    mine = (place, type(loader), type(loader.dataset), loader.num_workers, length_of(loader.dataset))
    theirs = (seen.place, seen.kind, type(seen.dataset), seen.num_workers, length_of(seen.dataset))
    if mine != theirs or loader.batch_size not in (seen.batch_size, None):
        return False
    # One that is alive may be used again: beside it, another one over the same samples is a library's new one.
    sampler = getattr(loader, "sampler", None)
    same = loader.dataset is seen.dataset and length_of(sampler) == length_of(seen.sampler)
    return seen.loader is None or (same and not _are_apart(seen.sampler, sampler))


def _are_apart(one: Any, other: Any) -> bool:
    """Whether two samplers choose among indices of their own, and of other samples."""
    chosen: list[Any] = [getattr(each, "__dict__", {}).get("indices") for each in (one, other)]
    try:
        return not set.intersection(*({int(index) for index in itertools.islice(each, _INDICES)} for each in chosen))
    except (TypeError, ValueError):  # none, or keys of another kind
        return False


def _batches_otherwise(one: LoaderStats, other: LoaderStats) -> bool:
    """Whether two loaders differ in batch size or order as a library's copy never differs from the script's own."""
    sizes = (one.batch_size, other.batch_size)
    plain = all(type(each.batch_sampler) is torch.utils.data.BatchSampler for each in (one, other))
    return (None not in sizes and sizes[0] != sizes[1]) or (plain and is_shuffled(one) != is_shuffled(other))


def _outstanding(iterator: Any, of: Pass) -> int:
    """Return how many batches its workers have made or make; without workers, how many two of them would."""
    if of.seen.num_workers:
        return int(getattr(iterator, "_tasks_outstanding", 0))
    rest = length_of(iterator)
    return _AS_IF_TWO if rest is None else max(0, min(_AS_IF_TWO, rest - of.count))
