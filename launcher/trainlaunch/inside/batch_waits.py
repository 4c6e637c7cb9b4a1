"""Tells listeners when this process begins to wait for a batch of a DataLoader, and when that is over."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from typing import Any

WAITING: set[int] = set()  # threads inside of an iterator's __next__: a wait within another one is part of that


class _Listeners:
    """Who hears of the waits of a class, by `enter(iterator)` and `leave(iterator, came)`, and `begin()` after a fork.

    None of them raises, nor needs to be safe from a handler of a signal that loads data in the same thread.
    """

    def __init__(self) -> None:
        self.all: tuple[Any, ...] = ()
        self.forks = 0
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self.forks += 1
        WAITING.clear()
        for each in self.all:
            each.begin()


def follow(base: Any, listener: Any, worker: Any) -> None:
    """Add a listener to the waits in `base.__next__`; `worker` is torch's get_worker_info."""
    listeners = getattr(base.__next__, "_trainlaunch", None) or _wrap(base, worker)
    listeners.all = (*listeners.all, listener)
    hide(*vars(type(listener)).values())


def _wrap(base: Any, worker: Any) -> _Listeners:
    """Put the only wrapper around `base.__next__`."""
    take, waiting, ident, listeners = base.__next__, WAITING, threading.get_ident, _Listeners()

    @functools.wraps(take)
    def __next__(self: Any) -> Any:  # noqa: N807
        thread = ident()
        if thread in waiting or worker() is not None:
            return take(self)
        came, forks = False, listeners.forks
        try:
            waiting.add(thread)
            for each in listeners.all:
                each.enter(self)
            batch = take(self)
            came = True
            return batch
        finally:
            if forks == listeners.forks:  # else in a process that was forked meanwhile, which never entered
                for each in listeners.all:
                    each.leave(self, came)
            waiting.discard(thread)

    __next__._trainlaunch = listeners  # type: ignore[attr-defined]
    hide(__next__)
    base.__next__ = __next__
    return listeners


def hide(*functions: Any) -> None:
    """Keep torch.compile from tracing functions, as it traces nothing of a DataLoader, without loading it."""
    frames = getattr(getattr(sys.modules.get("torch._C"), "_dynamo", None), "eval_frame", None)
    for each in functions:
        with contextlib.suppress(Exception):  # an old torch, and a method, which takes no attribute
            each._torchdynamo_disable = True
        with contextlib.suppress(Exception):
            frames.skip_code(each.__code__)  # type: ignore[union-attr]
