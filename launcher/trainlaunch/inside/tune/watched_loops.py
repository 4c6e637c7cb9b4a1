"""Where torch is watched, and the loops over loaders: which of these trains is told by an optimizer's steps."""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Callable
from typing import Any, Protocol

from trainlaunch.inside.code_places import caller
from trainlaunch.inside.tune.safety import reason_against, setting_of

TRAINED = 2  # batches after which an optimizer stepped
UNSEEN = ((50, 20.0), (4, 60.0))  # more batches and seconds than these, without any step of an optimizer of torch


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


class Loop:
    """One loader, from its first iterator on."""

    def __init__(self, loader: Any, threads: int | None) -> None:
        self.place = caller()
        self.timeout = loader.timeout
        self.own = setting_of(loader)._replace(threads=threads)
        self.batches = self.trained = self._steps = 0
        self._since = time.monotonic()
        names = (type(each).__name__ for each in (loader, loader.dataset, loader.sampler))
        numbers = (str(loader.batch_size or "batches"), str(_samples_of(loader.dataset)))
        self.key = " ".join((self.place, *names, *numbers))  # loops over training and validation may share a line
        self._begins = True
        self._evaluates: bool | None = None

    def begins(self) -> None:
        """It has a new iterator: what optimizers did since the last batch of the one before was not for it."""
        self._begins = True

    def asked(self, steps: int) -> None:
        """Its loop asks for a batch, when optimizers have stepped so often."""
        self.trained += not self._begins and steps > self._steps
        self._begins, self.batches, self._steps = False, self.batches + 1, steps

    def trains(self, steps: int) -> bool:
        """Whether it is the one that is trained on, as far as can be told.

        Without any step it is the loop that goes on for long: one that updates its weights itself, or one that only
        infers, in a script that has no optimizer at all.
        """
        import torch

        if steps:
            return self.trained >= TRAINED
        waited = time.monotonic() - self._since
        if not any(self.batches > batches and waited > seconds for batches, seconds in UNSEEN):
            return False
        if torch.is_grad_enabled():
            return True
        if self._evaluates is None:
            self._evaluates = _has_optimizer()
        return not self._evaluates

    def facts(self, loader: Any, cpus: float) -> dict[str, Any]:
        """Return what the host is told of the loader that was chosen."""
        import torch

        reason = reason_against(loader)
        return {
            "at": self.place,
            "key": self.key,
            "class": type(loader).__name__,
            "batch_size": loader.batch_size,
            "length": length_of(loader),
            "setting": list(self.own),
            "persistent_workers": bool(loader.persistent_workers),
            "changes_in_place": not reason,
            "reason": reason,
            "stepped": self.trained > 0,
            "cuda": torch.cuda.is_available() and torch.cuda.is_initialized(),
            "cpus": cpus,
            "torch": torch.__version__,
        }


def _has_optimizer() -> bool:
    """Return whether this process has an optimizer of torch, which then hasn't stepped yet."""
    from torch.optim import Optimizer

    return any(issubclass(type(each), Optimizer) for each in gc.get_objects())


def _samples_of(dataset: Any) -> Any:
    try:
        return len(dataset)
    except Exception:
        return "stream"


def length_of(loader: Any) -> Any:
    """Return the batches of an epoch, None where nobody knows."""
    try:
        return len(loader)
    except Exception:
        return None
