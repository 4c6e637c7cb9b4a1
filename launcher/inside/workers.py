"""Gives num_workers, and nothing else, to DataLoaders that state none: `data_loader.inject: num_workers`.

One line on standard error for each says which, or why it was left alone.
"""

from __future__ import annotations

import functools
import inspect
import json
import multiprocessing
import os
import sys
import sysconfig
import weakref
from typing import Any

FEWEST_BATCHES = 64  # a shorter loop is over before workers are worth their start
FLAGS = {  # libraries that state a number themselves
    "transformers": "pass --dataloader_num_workers {0}, or dataloader_num_workers={0} to TrainingArguments",
    "timm": "pass --workers {0}",
}
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PATHS = {os.path.realpath(sysconfig.get_path(each)) for each in ("stdlib", "platstdlib", "purelib", "platlib")}
_NOT_THE_JOBS = (*(each + os.sep for each in (_HERE, *_PATHS)), "<frozen ")


class Workers:
    """Decides for each DataLoader; `planned` are the job file's, for which /dev/shm is sized."""

    def __init__(self, planned: list[Any], automatic: int, iterable: type) -> None:
        self._left, self._automatic, self._iterable = list(planned), automatic, iterable
        self._calls: set[Any] = set()
        self._given: set[int] = set()
        self._built: Any = weakref.WeakSet()

    def number(self, given: dict[str, Any]) -> int | None:
        """Return the workers of a loader with these arguments, None where it is left alone; says so."""
        place, call, library = _place()
        if (library and given.get("num_workers") in self._given) or library == "threading":
            return None  # it passes on another's; or a check of ours builds it
        reason, found = self._reason(given, library), None
        if not reason:
            reason = "another loader was built there before" if call in self._calls else ""
        self._calls.add(call)
        if not reason:
            found, reason = self._planned(given)
        if found is None:
            say(f"{place} left alone: {reason}")
            return None
        self._left.remove(found)
        number = self._number_of(found)
        self._given.add(number)
        say(f"{place} num_workers 0 → {number}; random numbers differ from a run without workers")
        return number

    def _reason(self, given: dict[str, Any], library: str) -> str:
        """Return what is against workers for it, empty where nothing is."""
        if "num_workers" in given:
            flag = FLAGS.get(library, "write num_workers={0} there").format(self._automatic)
            return f"it states num_workers {given['num_workers']}; {flag}"
        dataset = given.get("dataset")
        if isinstance(dataset, self._iterable) or not hasattr(dataset, "__getitem__"):
            return "its dataset is iterable, and each worker would read all of it"
        for name in ("timeout", "worker_init_fn", "multiprocessing_context"):
            if given.get(name):
                return f"{name} is stated"
        method = multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
        if method != "fork":
            return f"workers start by {method}, which not every script allows"
        try:
            count = batches(given)
        except Exception:
            return "its length is unknown"
        return f"it has {count} batches, fewer than {FEWEST_BATCHES}" if count < FEWEST_BATCHES else ""

    def _planned(self, given: dict[str, Any]) -> tuple[Any, str]:
        """Return the job file's loader that it is, else None and why it is none."""
        size = None if given.get("batch_sampler") is not None else given.get("batch_size", 1)
        same = [each for each in self._left if each["batch_size"] == size]
        found = next(iter(same or [each for each in self._left if None in (size, each["batch_size"])]), None)
        if found is None and self._left:
            return None, f"/dev/shm is not sized for its batch_size {size}; state it in data_loader"
        if found is None:
            return None, "data_loader.loaders has no more; add this one"
        return (found, "") if self._number_of(found) else (None, found.get("why", "0 workers are planned"))

    def _number_of(self, planned: Any) -> int:
        return int(self._automatic if planned["num_workers"] is None else planned["num_workers"])

    def built(self, loader: Any, begins: bool = False) -> None:
        """Remember what torch built; say of another kind, when it `begins`, that it is left."""
        try:
            known = loader in self._built
            self._built.add(loader)
        except TypeError:
            return  # a subclass without a hash
        if begins and not known and not getattr(loader, "num_workers", 1):
            kind, flag = type(loader).__name__, f"give it num_workers={self._automatic}"
            say(f"{_place()[0]} left alone: {kind} is not torch's DataLoader; {flag}")


def batches(given: dict[str, Any]) -> int:
    """Return how many there are. Raises where a part has no length."""
    if given.get("batch_sampler") is not None:
        return len(given["batch_sampler"])
    samples = len(given["dataset"] if given.get("sampler") is None else given["sampler"])
    size = given.get("batch_size", 1) or 1
    return samples // size if given.get("drop_last") else -(-samples // size)


@functools.cache
def say(text: str) -> None:
    """Write a line to standard error once, in the first rank alone."""
    if os.environ.get("RANK", "0") == "0":
        print(f"trainlaunch: {text}", file=sys.stderr, flush=True)


def _place() -> tuple[str, Any, str]:
    """Return the job's own line, as `train.py:48`, its call, and the library called."""
    frame: Any = sys._getframe(1)
    library, nearest = "", frame
    while frame is not None:
        file = frame.f_code.co_filename
        if not os.path.realpath(file).startswith(_NOT_THE_JOBS) and not file.startswith(_NOT_THE_JOBS):
            break
        name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if name not in ("torch", "launcher", "trainlaunch_inside"):
            library, nearest = name, nearest if library else frame
        frame = frame.f_back
    frame = frame or nearest  # an installed program has no file of its own
    file, here = os.path.realpath(frame.f_code.co_filename), os.getcwd() + os.sep
    shown = file[len(here) :] if file.startswith(here) else file
    return f"{shown}:{frame.f_lineno}", (frame.f_code, frame.f_lasti), library


def install() -> None:
    """Put the decision in front of torch's DataLoader."""
    from torch.utils.data import dataloader

    planned = json.loads(os.environ["TRAINLAUNCH_WORKERS"])
    workers = Workers(planned, int(os.environ["TRAINLAUNCH_NUM_WORKERS"]), dataloader.IterableDataset)
    follow(dataloader.DataLoader, dataloader._BaseDataLoaderIter, workers, dataloader.get_worker_info)


def follow(kind: Any, iterators: Any, workers: Workers, worker: Any) -> None:
    """Let `workers` decide in `kind.__init__`, and see what `iterators` begin with; not in a DataLoader's worker."""
    build, begin = kind.__init__, iterators.__init__
    known = inspect.signature(build)

    @functools.wraps(build)
    def __init__(self: Any, *args: Any, **given: Any) -> None:  # noqa: N807
        try:
            number = workers.number(known.bind(self, *args, **given).arguments) if worker() is None else None
        except Exception:
            number = None  # torch says what is wrong with its arguments
        build(self, *args, **given if number is None else {**given, "num_workers": number})
        workers.built(self)

    def begins(self: Any, loader: Any, *args: Any, **given: Any) -> None:
        begin(self, loader, *args, **given)
        if worker() is None:
            workers.built(loader, begins=True)

    kind.__init__ = __init__
    iterators.__init__ = begins
