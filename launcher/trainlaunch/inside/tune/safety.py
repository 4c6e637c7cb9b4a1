"""Whether the iterator under a script's loop can be exchanged, and how a setting is given to a loader."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
from typing import Any

from trainlaunch.inside.process import say
from trainlaunch.inside.tune.task import Setting

_OWN_LOOP = ("lightning", "pytorch_lightning", "transformers.trainer")  # they keep iterators of their own, with state


def reason_against(loader: Any) -> str:
    """Return why another iterator of `loader` may not take the place of the script's own; empty where it may."""
    from torch.utils.data import DataLoader, IterableDataset

    if ranks()[1] > 1:
        return "several ranks step together"
    library = next((each for each in _OWN_LOOP if each in sys.modules), "")
    if library:
        return library.partition(".")[0] + " runs the loop"
    build = type(loader)._get_iterator
    if getattr(build, "__wrapped__", build) is not getattr(DataLoader._get_iterator, "__wrapped__", None):
        return type(loader).__name__ + " builds iterators of its own"
    if isinstance(loader.dataset, IterableDataset) or loader._dataset_kind:
        return "the dataset is a stream"
    for sampler in (loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None)):
        if sampler is not None and not type(sampler).__module__.startswith("torch.utils.data"):
            return type(sampler).__name__ + " may keep a state"
    return ""


def ranks() -> tuple[int, int]:
    """Return this process's rank and how many there are, as torch.distributed or the variables say."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    rank, world = (os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE"))
    return int(rank) if rank.isdigit() else 0, int(world) if world.isdigit() else 1


def setting_of(loader: Any) -> Setting:
    """Return the setting that a loader has, without threads; pinning is left out where no GPU is used."""
    import torch

    pinned = bool(loader.pin_memory) if torch.cuda.is_available() else None
    return Setting(loader.num_workers, loader.prefetch_factor or 2, pinned)


def torch_threads() -> int:
    """Return how many threads torch computes with; also while torch is being imported."""
    return int(sys.modules["torch"]._C.get_num_threads())


def apply_setting(loader: Any, setting: Setting, timeout: float) -> None:
    """Let the next iterator of `loader` have a setting; `timeout` is its own, which torch refuses without workers."""
    loader.num_workers = setting.num_workers
    loader.timeout = timeout if setting.num_workers else 0
    if setting.num_workers:
        loader.prefetch_factor = setting.prefetch_factor
    if setting.pin_memory is not None:
        loader.pin_memory = setting.pin_memory


def shutdown_workers(loader: Any, iterator: Any) -> None:
    """End the workers of an iterator that nobody asks for a batch again."""
    stop = getattr(iterator, "_shutdown_workers", None)
    if stop is not None:
        with contextlib.suppress(Exception):  # of one whose building failed halfway it ends those there are, and raises
            stop()
    if getattr(loader, "_iterator", None) is iterator:
        loader._iterator = None


def end_copy_of_main() -> None:
    """End this process where it is a worker that runs the script itself again, which has no main guard, and trains.

    That is how workers start by spawn and by forkserver; the loop that waits for the worker hears of its end.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        say("a worker has come to train: the script has no main guard")
        os._exit(1)


def worker_pids(iterator: Any) -> tuple[int, ...]:
    """Return the pids of an iterator's worker processes that run."""
    workers = getattr(iterator, "_workers", ())
    return tuple(each.pid for each in workers if each.pid is not None and each.is_alive())
