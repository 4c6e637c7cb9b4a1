"""Persistent workers keep the dataset as it was when they started, and the script changes its own afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from launcher.inside.probe.noticing import noticed
from launcher.inside.probe.objects import attributes, held, is_array
from launcher.inside.probe.reading import names_of_holder, names_of_reading
from launcher.inside.probe.seen import Seen

_PLAIN = (bool, int, float, str, type(None), tuple)
_SET_EPOCH = "set_epoch"
_FEW = 16  # entries of what may be a state, and no data


def notice(seen: Seen) -> dict[str, Any]:
    """Return the plain values of a dataset by path, as its workers get them."""
    return _plain(seen.dataset)


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield the attribute that the workers would keep the first value of."""
    if seen.num_workers == 0 or not seen.persistent_workers:
        return
    before, now = noticed(seen, "stale_dataset") or {}, _plain(seen.dataset)
    changed = [path for path, value in now.items() if path in before and before[path] != value]
    for path in changed:
        if _is_read(seen.dataset, path):
            told = {"path": path, "first": before[path], "now": now[path], "method": ""}
            yield {**told, "num_workers": seen.num_workers}
            return
    yield from _set_epoch(seen)


def _set_epoch(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield what a set_epoch of the dataset assigns in this process alone; the old values are put back."""
    for each in list(held(seen.dataset)):
        method = getattr(type(each.value), _SET_EPOCH, None)
        if method is None:
            continue
        old = dict(_own(each.value, each.path))
        with contextlib.suppress(Exception):  # of one that takes other arguments
            method(each.value, 10_007)
        new = dict(_own(each.value, each.path))
        changed = [path for path, value in new.items() if path in old and old[path] != value]
        for path in changed:
            _put_back(each.value, path.rpartition(".")[2], old[path])
        read = [path for path in changed if _is_read(seen.dataset, path, each.value)]
        if read:
            told = {"path": read[0], "first": old[read[0]], "now": None, "method": f"{each.path}.{_SET_EPOCH}"}
            yield {**told, "num_workers": seen.num_workers}
            return


def _plain(dataset: Any) -> dict[str, Any]:
    return dict(pair for each in held(dataset) for pair in _own(each.value, each.path))


def _own(value: Any, path: str) -> list[tuple[str, Any]]:
    found = ((path + suffix, _plain_value(each)) for suffix, each in attributes(value))
    return [(path, each) for path, each in found if isinstance(each, _PLAIN)]


def _plain_value(value: Any) -> Any:
    """Return the numbers of a small array as a tuple, anything else as it is: a shared tensor too."""
    if not is_array(value) or (hasattr(value, "is_shared") and value.is_shared()) or len(value.shape) > 1:
        return value
    numbers = value.tolist() if value.shape != () and value.shape[0] <= _FEW else None
    return tuple(numbers) if isinstance(numbers, list) else value


def _put_back(holder: Any, name: str, value: Any) -> None:
    own = getattr(holder, name)
    if is_array(own):
        own[:] = own.new_tensor(value) if hasattr(own, "new_tensor") else value
    else:
        setattr(holder, name, value)


def _is_read(dataset: Any, path: str, holder: Any = None) -> bool:
    """Whether reading a sample uses the attribute: it may be a counter that only the script looks at."""
    name = path.rpartition(".")[2]
    names = [names_of_reading(dataset)]
    for each in held(dataset):
        if holder is each.value or f"{each.path}.{name}" == path:
            names.append(names_of_holder(each.value))
    return any(name in each.used or not each.whole for each in names)
