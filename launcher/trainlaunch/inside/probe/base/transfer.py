"""What a batch or a dataset weighs when it moves between processes, and whether it can: nothing is copied or shared.

Pickles are written as multiprocessing does for a worker, into nothing: no tensor is moved to shared memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from multiprocessing import context
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import torch
from torch.multiprocessing import reductions

from trainlaunch.inside.probe.base.dataset_objects import is_array

PAGE = 4096  # bytes; the host rounds again to the pages of its machine


class Weight(NamedTuple):
    """`storages`: the bytes of each distinct tensor storage, which go to /dev/shm whole, views or not.

    `pickled`: bytes of all the rest, which goes through a pipe.
    """

    storages: list[int]
    pickled: int

    @property
    def size(self) -> int:
        """Return the bytes of the storages."""
        return sum(self.storages)

    @property
    def pages(self) -> int:
        """Return the bytes that the storages take in /dev/shm with pages of 4 KiB."""
        return sum(-(-each // PAGE) * PAGE for each in self.storages)


class _Sink:
    """Counts what is written to it."""

    def __init__(self) -> None:
        self.length = 0

    def write(self, data: Any) -> int:
        """Count one piece."""
        self.length += memoryview(data).nbytes
        return memoryview(data).nbytes

    def buffer(self, data: Any) -> bool:
        """Count an array that pickle would copy; False says that it was taken."""
        self.length += data.raw().nbytes
        return False


def weigh(value: Any) -> Weight:
    """Return what `value` weighs. Raises what pickle raises where a part of it can't go to another process."""
    found: dict[int, int] = {}

    def note(storage: Any) -> None:
        found[storage._cdata] = storage.nbytes()

    pickled = walk(value, note)
    return Weight([each for each in found.values() if each], pickled)


def walk(value: Any, note: Callable[[Any], None]) -> int:
    """Call `note` for the storage of each tensor on the CPU in `value`; return the bytes of the rest."""

    def storage(found: Any) -> Any:
        if found.device.type == "cpu":
            note(found)
        return (int, ())

    def tensor(found: Any) -> Any:
        on_device = found.layout is torch.strided and found.device.type != "cpu"
        return (int, ()) if on_device else reductions.reduce_tensor(found)

    sink = _Sink()
    pickler: Any = ForkingPickler(sink, 5, True, sink.buffer)
    changed = {torch.UntypedStorage: storage, torch.Tensor: tensor}
    pickler.dispatch_table = {**pickler.dispatch_table, **changed}
    pickler.dump(value)
    return sink.length


def pickle_error(value: Any) -> Exception | None:
    """Return what pickling `value` for another process raises; None where it can be pickled."""
    if is_array(value) and str(value.dtype) != "object":
        return None
    with for_child():
        try:
            walk(value, lambda storage: None)
        except Exception as error:  # PicklingError, and whatever a class's own methods raise
            return error
    return None


@contextlib.contextmanager
def for_child() -> Iterator[None]:
    """Pickle in this block as for a child that starts: what multiprocessing shares is pickled for one alone."""
    before = context.get_spawning_popen()
    child: Any = _Child()
    context.set_spawning_popen(child)
    try:
        yield
    finally:
        context.set_spawning_popen(before)


class _Child:
    """Stands for the child that multiprocessing would start."""

    def duplicate_for_child(self, descriptor: int) -> int:
        """Return the number under which the child would have a descriptor."""
        return descriptor
