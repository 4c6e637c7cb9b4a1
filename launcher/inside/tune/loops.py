"""The loaders of a script as they are iterated: which of them trains is told by an optimizer's steps, not by order."""

from __future__ import annotations

import time
from typing import Any

from launcher.inside.probe.places import caller
from launcher.inside.tune.safety import reason_against, setting_of

TRAINED = 2  # batches after which an optimizer stepped
UNSEEN_BATCHES, UNSEEN_SECONDS = 50, 20.0  # without any optimizer of torch


class Loop:
    """One loader, from its first iterator on."""

    def __init__(self, loader: Any) -> None:
        self.place = caller()
        self.timeout = loader.timeout
        self.own = setting_of(loader)
        self.batches = self.trained = self._steps = 0
        self._since = time.monotonic()
        sampler, dataset = type(loader.sampler).__name__, type(loader.dataset).__name__
        self.key = "{} {} {} {} {}".format(
            self.place, type(loader).__name__, dataset, loader.batch_size or "batches", sampler
        )

    def asked(self, steps: int) -> None:
        """Its loop asks for a batch, when optimizers have stepped so often."""
        self.trained += self.batches > 0 and steps > self._steps
        self.batches, self._steps = self.batches + 1, steps

    def trains(self, steps: int) -> bool:
        """Whether it is the one that is trained on, as far as can be told."""
        import torch

        if steps:
            return self.trained >= TRAINED
        waited = time.monotonic() - self._since
        return self.batches > UNSEEN_BATCHES and waited > UNSEEN_SECONDS and torch.is_grad_enabled()

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
            "cuda": torch.cuda.is_available() and torch.cuda.is_initialized(),
            "cpus": cpus,
            "torch": torch.__version__,
        }


def length_of(loader: Any) -> Any:
    """Return the batches of an epoch, None where nobody knows."""
    try:
        return len(loader)
    except Exception:
        return None
