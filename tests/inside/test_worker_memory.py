"""Whether checks may start workers of their own beside the script's."""

from __future__ import annotations

import os

import pytest
from trainlaunch.inside.probe.base import worker_memory
from trainlaunch.units import MIB


def require(monkeypatch: pytest.MonkeyPatch, workers: int, free: int, weight: int) -> None:
    """Ask for so many workers of `weight` MiB below 1,000 MiB, of which `free` are free."""
    monkeypatch.setattr(worker_memory, "enforced_limit", lambda: 1000 * MIB)
    monkeypatch.setattr(worker_memory, "_free", lambda most: free * MIB)
    monkeypatch.setattr(worker_memory, "_private", lambda pid: weight * MIB)
    worker_memory.require_room(workers, [7])


def test_workers_that_may_not_fit_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """As heavy as the script's own, beside a copy of its process, with something to spare; none need nothing."""
    require(monkeypatch, 2, 515, 200)
    require(monkeypatch, 0, 0, 200)
    with pytest.raises(
        MemoryError, match="2 fresh workers may take 464 MiB, and 513 MiB of the 1000 MiB limit are free"
    ):
        require(monkeypatch, 2, 513, 200)


def test_without_a_worker_to_weigh_one_that_imports_torch_is_as_heavy_as_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Forked ones share its pages."""
    monkeypatch.setattr(worker_memory, "_private", lambda pid: 700 * MIB if pid == "self" else 0)
    monkeypatch.setattr("multiprocessing.get_start_method", lambda allow_none: "forkserver")
    assert worker_memory._weight([7]) == 700 * MIB
    monkeypatch.setattr("multiprocessing.get_start_method", lambda allow_none: "fork")
    assert worker_memory._weight([]) == worker_memory.FORKED


def test_a_process_is_weighed_by_what_it_has_alone() -> None:
    """This one has something, one that ended nothing."""
    assert worker_memory._private(os.getpid()) > MIB
    assert worker_memory._private("4194305") == 0
    assert 0 < (worker_memory._free(1 << 50) or 0) < 1 << 50
