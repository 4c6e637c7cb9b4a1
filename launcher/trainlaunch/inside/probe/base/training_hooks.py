"""What tells that the script trains: a backward, a step of an optimizer, and what BatchNorm layers get meanwhile."""

from __future__ import annotations

import functools
import gc
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

MAX_LAYERS = 4096
batchnorm_inputs: set[tuple[str, tuple[int, ...]]] = set()  # (class, shape) of what a layer got


def watch_batchnorm() -> None:
    """Note the next input of each BatchNorm layer that is alive, if it is in training mode then."""
    layer = sys.modules["torch"].nn.modules.batchnorm._BatchNorm
    found = [each for each in gc.get_objects() if isinstance(type(each), type) and issubclass(type(each), layer)]
    for module in found[:MAX_LAYERS]:
        _note_next(module)


def _note_next(module: Any) -> None:
    torch = sys.modules["torch"]

    def note(module: Any, given: Any) -> None:
        if torch.compiler.is_compiling() or not module.training:
            return
        handle.remove()
        # Processes of a group that normalise together have more values than one batch has.
        alone = not isinstance(module, torch.nn.SyncBatchNorm) or not torch.distributed.is_initialized()
        if alone and given and isinstance(given[0], torch.Tensor) and given[0].dim() > 1:
            batchnorm_inputs.add((type(module).__name__, tuple(given[0].shape)))

    handle = module.register_forward_pre_hook(note)


def values_of_channel(shape: Sequence[int]) -> int:
    """Return how many values of each channel such an input has."""
    return shape[0] * math.prod(shape[2:])


def follow_training(trains: Callable[[], None]) -> None:
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
