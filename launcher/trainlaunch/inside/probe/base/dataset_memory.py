"""Sizes of what a dataset keeps in memory, and the memory that its container may use."""

from __future__ import annotations

import collections
import itertools
import json
import os
import sys
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from trainlaunch.inside.probe.base.dataset_objects import OBJECTS, beside, children, is_array, is_frame

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_MEASURED = 256  # entries of a longer container are told from so many of them
_PAGE = 4096
_SECONDS = 2.0
_DEPTH = 6


class MemorySize(NamedTuple):
    """Bytes of Python objects, whose pages are copied when a forked worker reads them, and bytes of plain data.

    Reading an object writes to the counter in its head; a long text or an array has one head for many pages of data.
    `tensors` are the data that spawn and forkserver share between the workers.
    """

    objects: int
    data: int
    tensors: int = 0

    def plus(self, other: MemorySize) -> MemorySize:
        """Return both together."""
        return MemorySize(self.objects + other.objects, self.data + other.data, self.tensors + other.tensors)

    def total(self) -> int:
        """Return the bytes of all three."""
        return self.objects + self.data + self.tensors


NOTHING = MemorySize(0, 0)


class Sizes(NamedTuple):
    """The size of a dataset, and the paths of what has most of each."""

    whole: MemorySize
    most_objects: str
    largest: str


def limit() -> int:
    """Return the bytes of memory that this job may use: its cgroup's limit, or its own where nothing enforces that."""
    stated = json.loads(os.environ.get("TRAINLAUNCH_PROBE") or "{}").get("memory")
    return min(enforced_limit(), stated or machine())


def enforced_limit() -> int:
    """Return the bytes beyond which the kernel ends processes: this container's limit, else the machine's memory."""
    for name in _LIMITS:
        try:
            with open(name, encoding="ascii") as file:
                text = file.read().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) < machine():
            return int(text)
    return machine()


def machine() -> int:
    """Return the machine's memory in bytes."""
    with open("/proc/meminfo", encoding="ascii") as file:
        return int(file.readline().split()[1]) * 1024


def ranks_here() -> int:
    """Return the ranks that share this container's memory, as torchrun tells them; 1 where nobody does."""
    text = os.environ.get("LOCAL_WORLD_SIZE", "1")
    return int(text) if text.isascii() and text.isdigit() and int(text) else 1


def sizes(dataset: Any) -> Sizes:
    """Return the sizes of what a dataset holds, in its classes and module too; a long container's by some entries."""
    found: list[tuple[str, MemorySize]] = []
    seen: set[int] = set()
    waiting = collections.deque([("dataset", dataset)])
    waiting += ((each.path, each.value) for each in beside(dataset) if _is_data(each.value))
    deadline = time.monotonic() + _SECONDS
    while waiting and len(seen) < OBJECTS and time.monotonic() < deadline:
        path, value = waiting.popleft()
        if id(value) in seen:
            continue
        if isinstance(value, _CONTAINERS) and len(value) > _MEASURED:
            seen.add(id(value))
            found.append((path, _of_many(value, seen)))
            continue
        found.append((path, own_size(value, seen)))
        seen.add(id(value))
        waiting.extend((path + suffix, each) for suffix, each in children(value))
    whole = NOTHING
    for _, size in found:
        whole = whole.plus(size)
    most_objects = max(found, key=lambda each: each[1].objects)[0]
    return Sizes(whole, most_objects, max(found, key=lambda each: each[1].total())[0])


def _is_data(value: Any) -> bool:
    return isinstance(value, _CONTAINERS) or is_array(value) or is_frame(value)


def _of_many(container: Any, seen: set[int]) -> MemorySize:
    entries: Iterable[Any] = container.items() if isinstance(container, dict) else container
    step = max(1, len(container) // _MEASURED)
    chosen = list(itertools.islice(entries, 0, step * _MEASURED, step))
    total = NOTHING
    for each in chosen:
        total = total.plus(deep_size(each, seen))
    scale = len(container) / len(chosen)
    data = int(total.data * scale) + sys.getsizeof(container, 0)
    return MemorySize(int(total.objects * scale), data, int(total.tensors * scale))


def deep_size(value: Any, seen: set[int], depth: int = 0) -> MemorySize:
    """Return the size of a value and of what it holds; what is in `seen` counts 0, and is added to it."""
    if id(value) in seen:
        return NOTHING
    total = own_size(value, seen)
    seen.add(id(value))
    if depth < _DEPTH:
        for _, each in children(value):
            total = total.plus(deep_size(each, seen, depth + 1))
    return total


def own_size(value: Any, seen: set[int]) -> MemorySize:
    """Return the size of one object without what it holds; memory that is mapped or shared counts 0."""
    if is_frame(value):
        used = value.memory_usage(deep=True)
        flat = value.memory_usage(deep=False)
        total, plain = int(getattr(used, "sum", lambda: used)()), int(getattr(flat, "sum", lambda: flat)())
        return MemorySize(total - plain, plain)
    if is_array(value):
        return _of_array(value, seen)
    if value is None or isinstance(value, (bool, type)) or (isinstance(value, int) and -6 < value < 257):
        return NOTHING
    size = sys.getsizeof(value, 0)
    heads = min(size, _PAGE)
    return MemorySize(heads, size - heads)


def _of_array(value: Any, seen: set[int]) -> MemorySize:
    if hasattr(value, "untyped_storage"):
        return _of_tensor(value, seen)
    base = value
    while getattr(base, "base", None) is not None:
        base = base.base
        if type(base).__name__ in ("memmap", "mmap"):
            return NOTHING
    if type(value).__name__ == "memmap" or (id(base) in seen and base is not value):
        return NOTHING
    if value.dtype == object:
        return _of_many(value.reshape(-1), seen) if value.size else NOTHING
    seen.add(id(base))
    return MemorySize(sys.getsizeof(object()), int(getattr(base, "nbytes", value.nbytes)))


def _of_tensor(value: Any, seen: set[int]) -> MemorySize:
    try:
        storage = value.untyped_storage()
        address = storage.data_ptr()
        if value.is_cuda or storage.is_shared() or getattr(storage, "filename", None):
            return NOTHING
    except Exception:  # a subclass without storage
        return NOTHING
    if address in seen:
        return MemorySize(sys.getsizeof(value, 0), 0)
    seen.add(address)
    return MemorySize(sys.getsizeof(value, 0), 0, storage.nbytes())
