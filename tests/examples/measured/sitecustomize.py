"""First on PYTHONPATH this tells of each process that takes batches from a DataLoader with workers, when it ends:

    measured {"unit": the largest batch in whole pages, "held": batches alive at once, "peak": the most of /dev/shm}

The job's own files and arguments stay as they are. For its first batches a process waits until the workers have filled
their queues, so that /dev/shm holds the most that the job ever puts there.
"""

from __future__ import annotations

import atexit
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import time
import weakref
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

PAGE = os.sysconf("SC_PAGE_SIZE")
QUIET_SECONDS = 0.05
LONGEST_WAIT = 3.0
WAITS = 24  # more batches than are ever queued and held
DATALOADER = "torch.utils.data.dataloader"


def used() -> int:
    """Return the bytes of /dev/shm in use."""
    now = os.statvfs("/dev/shm")
    return (now.f_blocks - now.f_bfree) * now.f_frsize


def tensors(batch: Any) -> Iterator[Any]:
    """Yield each tensor of a batch."""
    if hasattr(batch, "untyped_storage"):
        yield batch
    elif hasattr(batch, "values"):
        for each in batch.values():
            yield from tensors(each)
    elif isinstance(batch, (list, tuple)):
        for each in batch:
            yield from tensors(each)


class Measured:
    """What one process took from its DataLoaders."""

    def __init__(self) -> None:
        self.unit = self.held = self.peak = self.waited = 0
        self.before = used()
        # Weak: an iterator that is kept alive keeps its workers.
        self.alive: weakref.WeakKeyDictionary[Any, list[weakref.ref[Any]]] = weakref.WeakKeyDictionary()

    def note(self, iterator: Any, batch: Any) -> None:
        """Note a batch that `iterator` hands over."""
        found = list(tensors(batch))
        if not found or not iterator._num_workers:
            return
        sizes = {each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in found}
        self.unit = max(self.unit, sum(-(-size // PAGE) * PAGE for size in sizes.values()))
        now_alive = [each for each in self.alive.get(iterator, ()) if each() is not None] + [weakref.ref(found[0])]
        self.alive[iterator] = now_alive
        self.held = max(self.held, len(now_alive))
        if self.waited < WAITS:
            self.waited += 1
            self._wait_until_full()
        self.peak = max(self.peak, used() - self.before)

    def _wait_until_full(self) -> None:
        deadline = time.monotonic() + LONGEST_WAIT
        last, since = used(), time.monotonic()
        while time.monotonic() < min(since + QUIET_SECONDS, deadline):
            time.sleep(0.005)
            if (now := used()) != last:
                last, since = now, time.monotonic()

    def tell(self) -> None:
        """Print the line."""
        if self.unit:
            told = {"unit": self.unit, "held": self.held, "peak": self.peak}
            print(f"measured {json.dumps(told)}", file=sys.stderr, flush=True)


class Hook(importlib.abc.MetaPathFinder):
    """Changes torch's DataLoader when, and only if, the job imports it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return torch's own module, with its iterators watched."""
        if name != DATALOADER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            watch(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def watch(module: ModuleType) -> None:
    """Note each batch of each iterator of this process."""
    measured = Measured()
    original = module._BaseDataLoaderIter.__next__

    def following(self: Any) -> Any:
        batch = original(self)
        measured.note(self, batch)
        return batch

    module._BaseDataLoaderIter.__next__ = following
    atexit.register(measured.tell)


sys.meta_path.insert(0, Hook())
