"""What was seen of one loader of the script: what its records say, and what checks are given."""

from __future__ import annotations

import functools
import importlib
import inspect
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from trainlaunch.inside.probe.base import worker_memory
from trainlaunch.inside.probe.base.isolation import CheckTimeout, limited
from trainlaunch.inside.probe.base.transfer import walk

# What `notice` notes, each by a function notice_NAME of a module of checks.
NOTICING = {
    "handles": "handle_in_init",
    "threads": "worker_start",
    "values": "worker_start",
    "caches": "memory_growth",
    "workers": "worker_failures",
    "positions": "worker_samples",
}
_NOTICING_SECONDS = 3.0
_PAGE = 4096
T = TypeVar("T")


class Fetched(NamedTuple):
    """One batch as the process that made it measured it, before it was pinned or moved."""

    pid: int
    worker: int  # -1: the script's own process
    samples: int | None  # None where the dataset makes whole batches
    size: int  # bytes of its storages
    pages: int  # the same in pages of 4 KiB
    storages: list[int] | None  # of the largest batch so far of its fetcher; None for the others
    pickled: int
    fetch_seconds: float  # all of it, collate included
    collate_seconds: float
    problem: str = ""  # why it could not be measured; sizes are 0 then


class LoaderStats:
    """One loader, also where the script builds it again for each epoch; `number` and `order` count from 0.

    `dataset` and its kin outlive the loader, of which `loader` is None once the script has dropped it.
    """

    def __init__(self, number: int, loader: Any, place: str) -> None:
        self.number = number
        self.place = place  # train.py:48, where the script built it
        self.order: int | None = None  # by first iteration; None: the script only built it
        self.take(loader)
        self.iterators = 0  # built; a persistent one is built once
        self.passes: list[int] = []  # batches of each loop over it
        self.orders: list[
            Any
        ] = []  # what a DistributedSampler orders by, when each loop began; None of another sampler
        self.whole: list[int] = []  # batches of each loop that came to its end by itself
        self.cut = 0  # loops that probe ended
        self.trained = 0  # batches that backward or an optimizer's step followed
        self.with_grad = 0  # batches that came while autograd recorded
        self.together: set[int] = set()  # loaders whose loop had not ended when this one's began, and the reverse
        self.waits: list[float] = []  # seconds in __next__
        self.steps: list[float] = []  # seconds from there to the next __next__
        self.held = LiveBatches()
        self.fullest = (0.0, 0.0)  # bytes of all loaders at the fullest moment of this one's loops; batches in use then
        self.kept: float | None = None  # batches alive after a loop's end, when workers of any loop begin
        self.pids: dict[int, int] = {}  # of its workers, to the worker's number
        self.fetched: list[Fetched] = []
        self.waiting_since: float | None = None  # time.monotonic() of a __next__ that hasn't returned
        self.problem: BaseException | None = None  # what __next__ raised last, other than its end
        self.noticed: dict[str, Any] = {}  # by `notice` and by checks

    def take(self, loader: Any) -> None:
        """Note the loader that the script has now built here."""
        self._loader = weakref.ref(loader)
        self.kind = type(loader)
        self.dataset = loader.dataset
        self.collate_fn = loader.collate_fn
        self.batch_size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
        self.sampler = getattr(loader, "sampler", None)
        self.batch_sampler = loader.batch_sampler
        self.num_workers = loader.num_workers
        self.persistent_workers = bool(loader.persistent_workers)
        self.pin_memory = bool(loader.pin_memory)
        self.drop_last = bool(getattr(loader.batch_sampler, "drop_last", loader.drop_last))  # libraries wrap samplers
        self.worker_init_fn = loader.worker_init_fn
        self.prefetch_factor = loader.prefetch_factor
        self.timeout = loader.timeout
        self.generator = loader.generator
        self.context = loader.multiprocessing_context
        self.epoch_batches = None if self.iterable else length_of(loader)  # torch holds a stream to what it said once

    @property
    def loader(self) -> Any:
        """Return the script's own loader, None where it has none any more."""
        return self._loader()

    @property
    def pins(self) -> bool:
        """Return whether torch copies its batches to pinned memory: without a GPU it doesn't, whatever is set."""
        return self.pin_memory and torch.cuda.is_available()

    @property
    def batches(self) -> int:
        """Return how many batches the script got."""
        return sum(self.passes)

    @property
    def iterable(self) -> bool:
        """Return whether the dataset is a stream."""
        from torch.utils.data import IterableDataset

        return isinstance(self.dataset, IterableDataset)

    def similar(self, num_workers: int, **changed: Any) -> Any:
        """Return a new plain DataLoader over the same dataset and sampler, with so many workers.

        `changed` are keywords of DataLoader. What is set only for workers is left out where there are none. Raises
        MemoryError where so many more workers may not fit in the memory limit.
        """
        from torch.utils.data import DataLoader

        worker_memory.require_room(num_workers, self.pids)

        stated: dict[str, Any] = {"collate_fn": self.collate_fn, "worker_init_fn": self.worker_init_fn}
        if num_workers:
            stated["multiprocessing_context"] = self.context
        if self.batch_sampler is not None and not self.iterable:
            stated["batch_sampler"] = self.batch_sampler
        else:
            stated.update(batch_size=self.batch_size, drop_last=self.drop_last)
            if not self.iterable:
                stated["sampler"] = self.sampler
        stated.update(changed)
        loader = DataLoader.__new__(DataLoader)
        # Past what `inject` puts around it, which would report a loader that the script doesn't have.
        inspect.unwrap(DataLoader.__init__)(loader, self.dataset, num_workers=num_workers, **stated)
        return loader


class _Batch(NamedTuple):
    storages: list[tuple[Any, int, int]]  # a weak reference, its number in this process, its bytes
    size: int

    def alive(self, excluded: frozenset[int]) -> float:
        """Return which part of its bytes is still held."""
        alive = sum(size for ref, number, size in self.storages if number not in excluded and not ref.expired())
        return alive / self.size


class HeldBatches(NamedTuple):
    """How many batches something is held of, and of them how many storages, with their bytes in pages."""

    batches: int
    storages: int
    size: int


class LiveBatches:
    """Follows the batches of one loader by their storages: a view, or a part that is kept, holds its own alone."""

    def __init__(self) -> None:
        self._batches: list[_Batch] = []
        self.size = 0
        """Bytes of the batch that came last."""
        self.series: list[float] = []
        """Batches alive each time that one came, itself included."""

    def comes(self, batch: Any) -> None:
        """Note a batch that the script now gets. Raises what pickle raises."""
        self.series.append(1 + self.alive())
        found: dict[int, tuple[Any, int, int]] = {}

        def note(storage: Any) -> None:
            if storage.nbytes():
                found[storage._cdata] = (StorageWeakRef(storage), storage._cdata, storage.nbytes())

        walk(batch, note)
        self.size = sum(size for _, _, size in found.values())
        if found:
            self._batches.append(_Batch(list(found.values()), self.size))

    def alive(self, excluded: frozenset[int] = frozenset()) -> float:
        """Return how many batches are alive; storages of these numbers don't count."""
        self._batches = [each for each in self._batches if each.alive(frozenset())]
        return sum(each.alive(excluded) for each in self._batches)

    def holds(self) -> HeldBatches:
        """Return what is held, where a part counts as the whole batch does: each storage has a file and a page."""
        sizes = [[size for ref, _, size in each.storages if not ref.expired()] for each in self._batches]
        pages = sum(-(-size // _PAGE) for each in sizes for size in each)
        return HeldBatches(sum(map(bool, sizes)), sum(map(len, sizes)), pages * _PAGE)


def notice(seen: LoaderStats) -> None:
    """Note what checks want to know later of a loader, before its first iterator starts workers.

    Afterwards it may be another. One that raises or is late notes nothing.
    """
    for name in NOTICING:
        try:
            with limited(_NOTICING_SECONDS):
                seen.noticed[name] = _noticing(name)(seen)
        except (CheckTimeout, Exception):
            seen.noticed[name] = None


def noticed(seen: LoaderStats, name: str) -> Any:
    """Return what a function noted; of a loader that was never iterated, what it notes now."""
    if name not in seen.noticed and not seen.iterators:
        seen.noticed[name] = _noticing(name)(seen)
    return seen.noticed.get(name)


def _noticing(name: str) -> Any:
    module = importlib.import_module(f"trainlaunch.inside.probe.checks.{NOTICING[name]}")
    return getattr(module, f"notice_{name}")


def length_of(of: Any) -> int | None:
    """Return a length; None where there is none, or one that the script computes and that raises."""
    try:
        return len(of)
    except Exception:
        return None


def once_per_loader(function: Callable[[LoaderStats], T]) -> Callable[[LoaderStats], T]:
    """Make a function of what was seen of a loader keep its result; one that raises is called anew."""
    known: dict[int, tuple[LoaderStats, T]] = {}  # with what is seen, or another could get its id

    @functools.wraps(function)
    def kept(seen: LoaderStats) -> T:
        if id(seen) not in known:
            known[id(seen)] = seen, function(seen)
        return known[id(seen)][1]

    return kept
