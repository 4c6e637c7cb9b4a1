"""The loaders of a script as they are iterated: which of them trains is told by an optimizer's steps, not by order."""

from __future__ import annotations

import gc
import time
from typing import Any

from trainlaunch.inside.code_places import caller
from trainlaunch.inside.tune.safety import reason_against, setting_of

TRAINED = 2  # batches after which an optimizer stepped
UNSEEN = ((50, 20.0), (4, 60.0))  # more batches and seconds than these, without any step of an optimizer of torch


class Loop:
    """One loader, from its first iterator on."""

    def __init__(self, loader: Any) -> None:
        self.place = caller()
        self.timeout = loader.timeout
        self.own = setting_of(loader)
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
