"""Persistent workers keep the dataset as it was when they started, and the script changes its own afterwards."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from trainlaunch.inside.code_places import is_made_by_script
from trainlaunch.inside.probe.base.code_reading import names_of_holder, names_of_reading
from trainlaunch.inside.probe.base.dataset_objects import attributes, held, is_array
from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.noticing import noticed

_PLAIN = (bool, int, float, str, type(None), tuple)
_SET_EPOCH = "set_epoch"
_FEW = 16  # entries of what may be a state, and no data


class Object(NamedTuple):
    """Which object an attribute names, in words, and which are the first entries of a list."""

    number: int
    words: str
    entries: tuple[int, ...]


class Before(NamedTuple):
    """The values of a dataset by path; `kept` are the objects that they name, or others could get their numbers."""

    values: dict[str, Any]
    kept: list[Any]


def notice(seen: Seen) -> Before:
    """Return what a dataset's attributes are, as its workers get them."""
    every = list(held(seen.dataset))
    return Before(_values(every), [each.value for each in every])


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield the attribute that the workers would keep the first value of."""
    if seen.num_workers == 0 or not seen.persistent_workers:
        return
    before = (noticed(seen, "stale_dataset") or Before({}, [])).values
    now = _values(list(held(seen.dataset)))
    for path, value in now.items():
        if path in before and _has_changed(before[path], value) and _is_read(seen.dataset, path):
            yield {**_told(path, before[path], value), "method": "", "num_workers": seen.num_workers}
            return
    yield from _set_epoch(seen)


def _told(path: str, before: Any, now: Any) -> dict[str, Any]:
    first, last = (each.words if isinstance(each, Object) else each for each in (before, now))
    return {"path": path, "first": first, "now": f"another {last}" if last == first else last}


def _set_epoch(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield what a set_epoch of the dataset assigns in this process alone; the old values are put back."""
    for each in list(held(seen.dataset)):
        method = getattr(type(each.value), _SET_EPOCH, None)
        if method is None:
            continue
        kept = [(suffix, value, list(value) if isinstance(value, list) else None) for suffix, value in _own(each.value)]
        old = {each.path + suffix: _value(value) for suffix, value, _ in kept}
        with contextlib.suppress(Exception):  # of one that takes other arguments
            method(each.value, 10_007)
        new = {each.path + suffix: _value(value) for suffix, value in _own(each.value)}
        changed = [path for path, value in new.items() if path in old and _has_changed(old[path], value)]
        for suffix, value, entries in kept:
            if each.path + suffix in changed:
                _put_back(each.value, suffix[1:], value, entries, old[each.path + suffix])
        read = [path for path in changed if _is_read(seen.dataset, path, each.value)]
        if read:
            told = {**_told(read[0], old[read[0]], None), "now": None, "method": f"{each.path}.{_SET_EPOCH}"}
            yield {**told, "num_workers": seen.num_workers}
            return


def _values(every: list[Any]) -> dict[str, Any]:
    return {each.path + suffix: _value(value) for each in every for suffix, value in _own(each.value)}


def _own(value: Any) -> list[tuple[str, Any]]:
    """Return the attributes of an object that may change; of a library's object the plain ones."""
    own = is_made_by_script(type(value)) or type(value).__module__.startswith("torch.utils.data")
    return [pair for pair in attributes(value) if own or not isinstance(_value(pair[1]), Object)]


def _value(value: Any) -> Any:
    """Return what is compared: a plain value, the numbers of a small array as a tuple, else which object it is."""
    if isinstance(value, _PLAIN):
        return value
    if is_array(value) and not _is_shared(value) and len(value.shape) == 1 and value.shape[0] <= _FEW:
        return tuple(value.tolist())
    length = len(value) if isinstance(value, (list, dict, set)) else None
    words = type(value).__name__ if length is None else f"{type(value).__name__} of {length}"
    entries = tuple(id(each) for each in value[:_FEW]) if isinstance(value, list) else ()
    return Object(
        id(value), getattr(value, "__name__", words) if isinstance(value, types.FunctionType) else words, entries
    )


def _is_shared(array: Any) -> bool:
    return bool(hasattr(array, "is_shared") and array.is_shared())


def _has_changed(before: Any, now: Any) -> bool:
    """Whether a value is another one; what was made late, or put into the room that was left for it, is none."""
    if isinstance(before, Object) and isinstance(now, Object):
        pairs = zip(before.entries, now.entries)
        return before.number != now.number or any(one not in (other, id(None)) for one, other in pairs)
    if isinstance(now, Object) or isinstance(before, Object):
        return False
    try:
        return bool(before != now)
    except Exception:  # arrays in a tuple, which say neither yes nor no
        return False


def _put_back(holder: Any, name: str, value: Any, entries: list[Any] | None, before: Any) -> None:
    if is_array(value) and isinstance(before, tuple) and not isinstance(before, Object):
        value[:] = value.new_tensor(before) if hasattr(value, "new_tensor") else before
    elif entries is not None:
        value[:] = entries
    setattr(holder, name, value)


def _is_read(dataset: Any, path: str, holder: Any = None) -> bool:
    """Whether reading a sample uses the attribute: it may be a counter that only the script looks at."""
    name = path.rpartition(".")[2]
    names = [names_of_reading(dataset)]
    for each in held(dataset):
        if holder is each.value or f"{each.path}.{name}" == path:
            names.append(names_of_holder(each.value))
    return any(name in each.used or not each.whole for each in names)
