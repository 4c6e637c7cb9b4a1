"""Tells when the script trains: backward was called, or an optimizer made a step."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any


def follow(trains: Callable[[], None]) -> None:
    """Call `trains` after each backward and each step, once torch is imported as a whole."""
    import torch
    from torch.optim import Optimizer

    backward = torch.autograd.backward

    @functools.wraps(backward)
    def wrapped(*args: Any, **kw: Any) -> Any:
        done = backward(*args, **kw)
        trains()
        return done

    torch.autograd.backward = wrapped  # Tensor.backward looks it up at each call
    register = getattr(sys.modules[Optimizer.__module__], "register_optimizer_step_post_hook", None)
    if register is not None:
        register(lambda *_: trains())
