"""Reads single samples of a loader's dataset in this process: which indices, what came of each, and from which file."""

from __future__ import annotations

import itertools
import os
import random
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from trainlaunch.inside.probe.base.isolation import CheckTimeout
from trainlaunch.inside.probe.base.loader_stats import LoaderStats, length_of
from trainlaunch.inside.probe.base.own_loaders import first_indices, sampler_of

SECONDS = 5.0
_WHOLE = ("SequentialSampler", "RandomSampler", "DistributedSampler", "SeedableRandomSampler")
_NO_DATA = (".py", ".pyc", ".so", ".pth", "/proc/", "/sys/", "/dev/", "/etc/")


class Sample(NamedTuple):
    """One sample: its index (its place in the stream of an iterable dataset), its value or what it raised, its file."""

    index: Any
    value: Any
    error: BaseException | None
    file: str


class _Opened:
    """Notes the files that are opened for reading; a hook of this process, which can't be taken out again."""

    def __init__(self) -> None:
        self.names: list[str] | None = None
        self.installed = False

    def start(self) -> None:
        if not self.installed:
            sys.addaudithook(self._note)
            self.installed = True
        self.names = []

    def stop(self) -> list[str]:
        names, self.names = self.names or [], None
        return names

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.names is None or event != "open" or not isinstance(arguments[0], (str, bytes)):
            return
        name, mode = os.fsdecode(arguments[0]), arguments[1] if len(arguments) > 1 else None
        if not (isinstance(mode, str) and set(mode) & set("wax+")) and not _is_no_data(name):
            self.names.append(name)


_opened = _Opened()


def _is_no_data(name: str) -> bool:
    return name.endswith(_NO_DATA[:4]) or name.startswith(_NO_DATA[4:])


def indices(seen: LoaderStats, count: int) -> list[Any]:
    """Return up to `count` indices that the loader may ask for: the first, the last and random others, in that order.

    Of a sampler whose choice isn't known they are the first that a sampler of it gives.
    """
    sampler = sampler_of(seen)
    length = length_of(getattr(sampler, "data_source", seen.dataset)) or 0
    if type(sampler).__name__ in _WHOLE and length:
        known: Any = range(length)
    elif "indices" in getattr(sampler, "__dict__", {}):
        known = list(vars(sampler)["indices"])
    else:
        known = first_indices(seen, count)
    if not known:
        return []
    others = random.Random(0).sample(range(len(known)), min(count, len(known)))  # noqa: S311 - any will do
    chosen = dict.fromkeys([0, len(known) - 1, *others])
    return [known[each] for each in itertools.islice(chosen, count)]


def samples(seen: LoaderStats, count: int, seconds: float = SECONDS) -> Iterator[Sample]:
    """Yield up to `count` samples, read one at a time in this process; after `seconds` no more is begun."""
    deadline = time.monotonic() + seconds
    if seen.iterable:
        yield from _of_stream(seen, count, deadline)
        return
    for index in indices(seen, count):
        if time.monotonic() > deadline:
            return
        yield read(seen.dataset, index, seen.batch_sampler is not None)


def read(dataset: Any, index: Any, batched: bool = True) -> Sample:
    """Return one sample as a worker reads it, of a loader that makes batches or not; what it raises is kept."""
    several = getattr(dataset, "__getitems__", None) if batched else None
    _opened.start()
    try:
        value, error = (several([index])[0] if callable(several) else dataset[index]), None
    except CheckTimeout:
        raise
    except BaseException as raised:  # the script's own, sys.exit too
        value, error = None, raised
    return Sample(index, value, error, _file(_opened.stop(), dataset, index))


def _of_stream(seen: LoaderStats, count: int, deadline: float) -> Iterator[Sample]:
    stream: Iterator[Any] = iter(())
    for index in range(-1, count):
        if time.monotonic() > deadline:
            return
        _opened.start()
        try:
            if index < 0:
                stream = iter(seen.dataset)
                continue
            value, error = next(stream), None
        except StopIteration:
            return
        except Exception as raised:  # the script's own
            value, error = None, raised
        finally:
            names = _opened.stop()
        yield Sample(index, value, error, names[-1] if names else "")
        if error is not None:
            return


def _file(opened: list[str], dataset: Any, index: Any) -> str:
    """Return the file that a sample was read from: the last that was opened, else the one that the dataset lists."""
    try:
        return opened[-1] if opened else listed_file(dataset, index)
    except Exception:  # the script's own sequences
        return ""


def listed_file(dataset: Any, index: Any) -> str:
    """Return the file's name in a list of the dataset that has one entry a sample; empty where there is none."""
    for _ in range(8):  # Subset of a Subset
        inner, chosen, ends = (getattr(dataset, name, None) for name in ("dataset", "indices", "cumulative_sizes"))
        if inner is not None and chosen is not None:
            dataset, index = inner, chosen[index]
        elif ends is not None and isinstance(index, int):
            part = next((number for number, end in enumerate(ends) if index < end), 0)
            dataset, index = dataset.datasets[part], index - (ends[part - 1] if part else 0)
        else:
            break
    own: dict[str, Any] = getattr(dataset, "__dict__", {})
    length = length_of(dataset) or 0
    for value in own.values():
        if isinstance(value, (list, tuple)) and len(value) == length and isinstance(index, int) and index < length:
            name = _name_in(value[index])
            if name:
                return name
    return ""


def _name_in(entry: Any) -> str:
    parts = entry.values() if isinstance(entry, dict) else entry if isinstance(entry, (list, tuple)) else (entry,)
    for each in itertools.islice(parts, 16):
        if isinstance(each, os.PathLike) or (isinstance(each, str) and ("/" in each or "." in each[1:])):
            return str(os.fspath(each))
    return ""
