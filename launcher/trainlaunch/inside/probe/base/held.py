"""How many batches the script still holds while it asks for the next one."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch.multiprocessing.reductions import StorageWeakRef

from trainlaunch.inside.probe.base.storages import walk


class _Batch(NamedTuple):
    storages: list[tuple[Any, int, int]]  # a weak reference, its number in this process, its bytes
    size: int

    def alive(self, excluded: frozenset[int]) -> float:
        """Return which part of its bytes is still held."""
        alive = sum(size for ref, number, size in self.storages if number not in excluded and not ref.expired())
        return alive / self.size


class Held:
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
