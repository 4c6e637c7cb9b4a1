"""Where torch is watched: each iterator of a DataLoader that is built, each batch, each step of an optimizer."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol


class Watcher(Protocol):
    """What is told of a script's loaders."""

    def before_build(self, loader: Any) -> None:
        """`loader` is about to build an iterator, with the arguments that it has when this returns."""

    def built(self, iterator: Any, loader: Any) -> None:
        """It has built one."""

    def next(self, iterator: Any, fetch: Callable[[Any], Any]) -> Any:
        """Return the next batch; `fetch` gives it."""

    def stepped(self) -> None:
        """An optimizer has stepped."""


def watch(watcher: Watcher) -> None:
    """Patch torch's classes in place, so that names which scripts imported before mean the same.

    A worker that iterates loaders of its own tells of none.
    """
    from torch.utils.data import dataloader

    base, worker = dataloader._BaseDataLoaderIter, dataloader.get_worker_info
    begin, fetch = base.__init__, base.__next__

    @functools.wraps(begin)
    def init(self: Any, loader: Any, *args: Any, **named: Any) -> None:
        begin(self, loader, *args, **named)
        if worker() is None:
            watcher.built(self, loader)

    @functools.wraps(fetch)
    def following(self: Any) -> Any:
        return watcher.next(self, fetch) if worker() is None else fetch(self)

    base.__init__, base.__next__ = init, following
    _watch_building(dataloader.DataLoader, lambda loader: watcher.before_build(loader) if worker() is None else None)


def _watch_building(base: Any, before: Callable[[Any], None]) -> None:
    """Wrap _get_iterator of DataLoader and of each class that is derived from it later, as torchdata's is."""

    def wrap(owner: Any) -> None:
        build = owner.__dict__.get("_get_iterator")
        if build is None:
            return

        @functools.wraps(build)
        def get_iterator(self: Any, *args: Any, **named: Any) -> Any:
            before(self)
            return build(self, *args, **named)

        owner._get_iterator = get_iterator

    derived = base.__init_subclass__.__func__  # typing.Generic's

    def init_subclass(cls: Any, **named: Any) -> None:
        derived(cls, **named)
        wrap(cls)

    base.__init_subclass__ = classmethod(init_subclass)  # type: ignore[arg-type]
    wrap(base)


def watch_optimizers(watcher: Watcher) -> None:
    """Hook all optimizers of torch, which is whole by the time that a loader is iterated, and not before."""
    from torch.optim import optimizer

    register = getattr(optimizer, "register_optimizer_step_post_hook", None)
    if register is not None:
        register(lambda *_: watcher.stepped())
