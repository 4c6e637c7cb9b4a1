"""Gives num_workers, and nothing else, to DataLoaders that set none, or with `data_loader.inject: force` to all."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import sys
from multiprocessing import current_process, get_all_start_methods, get_start_method
from typing import Any

from trainlaunch.inside.process import rank, say
from trainlaunch.inside.spawned import against_spawned

FEWEST_BATCHES = 64  # fewer end too soon
FLAGS = {  # libraries that set a number themselves
    "transformers": "pass --dataloader_num_workers {0}, or it to TrainingArguments",
    "timm": "pass --workers {0}",
}
_FOLDER = os.path.join(os.getcwd(), "")  # scripts change it
_LIBRARIES = (*map(os.path.dirname, (os.__file__, __file__)), "/site-packages/", "/dist-packages/", "<frozen ")


class Workers:
    """Decides for each DataLoader; /dev/shm is sized for the `planned` ones."""

    def __init__(self, planned: list[Any], automatic: int, iterable: type, *, force: bool = False) -> None:
        self._left, self._automatic, self._iterable, self._force = planned, automatic, iterable, force
        self._tensors = max([0, *(each.get("tensors", 0) for each in planned)])
        self._calls: set[Any] = set()
        self._said: dict[int, str] = {}

    def number(self, given: dict[str, Any]) -> int | None:
        """Return the workers of a loader with these arguments, None where it is left alone."""
        place, call, library = _place()
        dataset = id(given.get("dataset"))
        again = library and dataset in self._said
        if library == "threading" or (again and "num_workers" in given):
            return None  # a check of ours, or a library that builds the job's own again
        reason = self._reason(given, library)
        if not reason and call in self._calls:
            reason = "another loader was built there before"
        self._calls.add(call)
        planned: Any = {"num_workers": 0, "why": reason} if reason else self._planned(given)
        if self._force and planned["num_workers"] == 0 and "why" not in planned:
            planned = _refused_without_workers(given) or planned
        number = int(self._automatic if planned["num_workers"] is None else planned["num_workers"])
        text = f"left alone: {planned.get('why', '0 workers are planned')}"
        stated = int(given.get("num_workers") or 0)
        forced = self._force and "why" not in planned
        if number or forced:
            self._left.remove(planned)
            text = f"num_workers {stated} → {number}; random numbers differ from a run {_with(stated)}"
            text = f"num_workers {stated}, as planned" if number == stated else text
        if number or not again or self._said[dataset] != text:
            _say_once(f"{place} {text}")
        self._said[dataset] = text
        return number if forced else number or None

    def _reason(self, given: dict[str, Any], library: str) -> str:
        """Return what is against workers, empty where nothing is."""
        if "num_workers" in given and not self._force:
            flag = FLAGS.get(library, "write num_workers={0} there").format(self._automatic)
            return f"it states num_workers {given['num_workers']}; {flag}"
        dataset = given.get("dataset")
        if isinstance(dataset, self._iterable) or not hasattr(dataset, "__getitem__"):
            return "its dataset is iterable, and each worker would read all of it"
        for name in ("timeout", "worker_init_fn", "multiprocessing_context"):
            if given.get(name):
                return f"{name} is stated"
        if current_process().daemon:
            return "its process is a daemon, which may start none"
        if int(given.get("num_workers") or 0) > self._automatic:  # however short its loop, fewer start sooner
            return ""
        try:
            count = batches(given)
        except Exception:
            return "its length is unknown"
        if count < FEWEST_BATCHES:
            return f"it has {count} batches, fewer than {FEWEST_BATCHES}"
        method = get_start_method(allow_none=True) or get_all_start_methods()[0]
        problem = method != "fork" and against_spawned(given, self._tensors)
        return f"workers start by {method}, and {problem}" if problem else ""

    def _planned(self, given: dict[str, Any]) -> Any:
        """Return the job file's loader that it is; without workers, and why, where it is none."""
        sampler, size = given.get("batch_sampler"), given.get("batch_size", 1)
        size = size if sampler is None else getattr(sampler, "batch_size", None)
        same = [each for each in self._left if each["batch_size"] == size]
        for each in same or self._left:
            if same or None in (size, each["batch_size"]):
                return each
        why = f"/dev/shm is not sized for its batch_size {size}; state it in data_loader"
        return {"num_workers": 0, "why": why if self._left else "data_loader.loaders has no more; add this one"}

    def begins(self, loader: Any) -> None:
        """Say that one of another kind is left."""
        if not hasattr(loader, "_trainlaunch") and not getattr(loader, "num_workers", 1):
            kind, flag = type(loader).__name__, f"give it num_workers={self._automatic}"
            _say_once(f"{_place()[0]} left alone: {kind} is not torch's DataLoader; {flag}")


def _with(workers: int) -> str:
    return f"with {workers}" if workers else "without workers"


def _refused_without_workers(given: dict[str, Any]) -> Any:
    """Return a loader's plan of no workers that torch would refuse, and why; None where it takes it."""
    name = next((each for each in ("prefetch_factor", "persistent_workers") if given.get(each)), None)
    return name and {"num_workers": 0, "why": f"0 are planned, and torch refuses {name} without workers"}


def batches(given: dict[str, Any]) -> int:
    """Return how many there are; raises without a length."""
    if given.get("batch_sampler") is not None:
        return len(given["batch_sampler"])
    samples = len(given["dataset"] if given.get("sampler") is None else given["sampler"])
    size = given.get("batch_size", 1) or 1
    return samples // size if given.get("drop_last") else -(-samples // size)


@functools.lru_cache(None)
def _say_once(text: str) -> None:
    """Let the first rank say it."""
    if rank() == 0:
        say(text)


def _is_library(file: str) -> bool:
    return any(each in file for each in _LIBRARIES) or ("/bin/" in file and not file.endswith(".py"))  # pip wrote it


def _place() -> tuple[str, Any, str]:
    """Return the job's own line, as `train.py:48`, its call, and the library called."""
    frame: Any = sys._getframe(1)
    library, nearest = "", frame
    while frame is not None and _is_library(frame.f_code.co_filename):
        name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if name not in ("torch", "trainlaunch_inside"):
            nearest = nearest if library else frame
            library = library if library in FLAGS else name
        frame = frame.f_back
    frame = frame or nearest  # an installed program has no file of its own
    file = os.path.join(_FOLDER, frame.f_code.co_filename)
    shown = file[len(_FOLDER) :] if file.startswith(_FOLDER) else file
    return f"{shown}:{frame.f_lineno}", (frame.f_code, frame.f_lasti), library


def install() -> None:
    """Decide where DataLoaders are built, and see iterators begin, but not in a worker."""
    from torch.utils.data import dataloader

    planned, automatic = json.loads(os.environ["TRAINLAUNCH_WORKERS"]), int(os.environ["TRAINLAUNCH_NUM_WORKERS"])
    force = os.environ.get("TRAINLAUNCH_FORCE_WORKERS") == "1"
    workers = Workers(planned, automatic, dataloader.IterableDataset, force=force)
    build, begin = dataloader.DataLoader.__init__, dataloader._BaseDataLoaderIter.__init__
    known, worker = inspect.signature(build), dataloader.get_worker_info
    names = list(known.parameters)[1:]  # without self
    position = names.index("num_workers")

    @functools.wraps(build)
    def __init__(self: Any, *args: Any, **given: Any) -> None:  # noqa: N807
        with contextlib.suppress(Exception):  # torch says what is wrong with its arguments
            number = None if worker() else workers.number(known.bind(self, *args, **given).arguments)
            if number is not None:
                beyond = zip(names[position:], args[position:])
                args, given = args[:position], {**dict(beyond), **given}
                given["num_workers"] = number
        build(self, *args, **given)
        self.__dict__["_trainlaunch"] = "built"

    def begins(self: Any, loader: Any, *args: Any, **given: Any) -> None:
        begin(self, loader, *args, **given)
        with contextlib.suppress(Exception):
            if not worker():
                workers.begins(loader)

    dataloader.DataLoader.__init__ = __init__
    dataloader._BaseDataLoaderIter.__init__ = begins
