"""Pickles as multiprocessing does for a worker, into nothing: no tensor is moved to shared memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from multiprocessing import context
from typing import Any

from trainlaunch.inside.probe.base.dataset_objects import is_array
from trainlaunch.inside.probe.base.storages import walk


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
