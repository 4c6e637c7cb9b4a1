"""What a dataset holds: a walk over attributes, items and what functions close over, bounded in objects and time."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import logging
import sys
import time
import types
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

OBJECTS, ITEMS, SECONDS, DEPTH = 20_000, 256, 2.0, 12
_LEAVES = (str, bytes, bytearray, int, float, complex, type(None), type, types.ModuleType, logging.Logger)


class Held(NamedTuple):
    """One object that a dataset holds: its path (`dataset.reader.file`), whose attribute it is, and that name."""

    path: str
    value: Any
    holder: Any
    name: str


def held(root: Any, path: str = "dataset") -> Iterator[Held]:
    """Yield what `root` holds, nearest first and each once; `root` itself first. Stops at the bounds above."""
    seen = {id(root)}
    waiting = collections.deque([(Held(path, root, None, ""), 0)])
    deadline = time.monotonic() + SECONDS
    while waiting and len(seen) < OBJECTS and time.monotonic() < deadline:
        each, depth = waiting.popleft()
        yield each
        if depth >= DEPTH:
            continue
        for suffix, value in children(each.value):
            if id(value) in seen or isinstance(value, _LEAVES):
                continue
            seen.add(id(value))
            named = suffix.startswith(".")
            holder, name = (each.value, suffix[1:]) if named else (each.holder, each.name)
            waiting.append((Held(each.path + suffix, value, holder, name), depth + 1))


def children(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (path suffix, object) of what one object holds itself; of long lists the first items."""
    if isinstance(value, _LEAVES) or is_array(value) or is_frame(value):
        return
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", each) for key, each in _first(value.items()))
    elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        yield from ((f"[{index}]", each) for index, each in enumerate(_first(value)))
    elif isinstance(value, functools.partial):
        yield ".func", value.func
        yield from ((f".args[{index}]", each) for index, each in enumerate(value.args))
        yield from ((f".keywords[{key!r}]", each) for key, each in value.keywords.items())
    elif isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
    elif isinstance(value, types.FunctionType):
        yield from of_function(value)
    yield from attributes(value)


def of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield (`.<name>`, object) of what a function closes over, and of the defaults of its arguments."""
    code, defaults = function.__code__, function.__defaults__ or ()
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        if _is_set(cell):
            yield f".<{name}>", cell.cell_contents
    positional = code.co_varnames[: code.co_argcount]
    yield from ((f".<{name}>", each) for name, each in zip(positional[len(positional) - len(defaults) :], defaults))
    yield from ((f".<{name}>", each) for name, each in (function.__kwdefaults__ or {}).items())


def attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (`.name`, object) of an object's own attributes, slots too; nothing is computed for it."""
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict):
        yield from ((f".{name}", each) for name, each in _first(own.items()) if isinstance(name, str))
    for owner in type(value).__mro__:
        for name in _slots(owner):
            found = getattr(value, name, None)
            if found is not None:
                yield f".{name}", found


def parts(value: Any) -> list[tuple[str, Any]]:
    """Return (path suffix, object) of what a sample or a batch is made of; nothing for a tensor, a number, a text."""
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", each) for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        return [(f"[{index}]", each) for index, each in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{each.name}", getattr(value, each.name, None)) for each in dataclasses.fields(value)]
    return []


def is_array(value: Any) -> bool:
    """Whether it is a tensor or a NumPy array, whose items are no objects that are walked."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return True
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def is_frame(value: Any) -> bool:
    """Whether it is a table or a column of pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, (pandas.DataFrame, pandas.Series, pandas.Index))


def _slots(owner: type) -> tuple[str, ...]:
    slots = owner.__dict__.get("__slots__", ())
    if not (sys.modules.get(owner.__module__) and isinstance(slots, (str, tuple, list))):
        return ()
    return tuple(
        each
        for each in ((slots,) if isinstance(slots, str) else slots)
        if isinstance(owner.__dict__.get(each), types.MemberDescriptorType)
    )


def _first(items: Any) -> Iterator[Any]:
    """Return the first items; a container that another thread changes meanwhile gives what it gave so far."""
    try:
        yield from list(itertools.islice(items, ITEMS))
    except RuntimeError:
        return


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True
