"""What workers get when they start: threads' locks that stay held, and a dataset that the script changes afterwards."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from trainlaunch.inside.code_places import is_made_by_script, is_of_script, place
from trainlaunch.inside.probe.base.dataset_objects import (
    attributes,
    is_array,
    names_of_holder,
    names_of_reading,
    reachable_objects,
)
from trainlaunch.inside.probe.base.loader_facts import start_method
from trainlaunch.inside.probe.base.loader_stats import LoaderStats, noticed

# Packages whose threads hold locks that a forked child waits for, by the names that Linux has of them. Those of BLAS,
# OpenMP, torch's autograd and CUDA are in every training process, and prepare themselves for a fork.
_NATIVE = re.compile(
    r"^(?P<ray>gcs_|raylet|worker\.io|ray[:_.])|^(?P<grpc>grpc|default-executo|resolver-executo|event_engine|timer_manager)"
    r"|^(?P<tensorflow>tf_|TF_)|^(?P<java>GC Thread|G1 |C[12] Compiler|VM Thread)"
)
_PACKAGES = {
    "ray",
    "grpc",
    "tensorflow",
    "pymongo",
    "kafka",
    "confluent_kafka",
    "pyspark",
    "py4j",
    "distributed",
    "dask",
}
_PLAIN = (bool, int, float, str, type(None), tuple)
_SET_EPOCH = "set_epoch"
_FEW = 16  # entries of what may be a state, and no data


def notice_threads(seen: LoaderStats) -> list[dict[str, Any]]:
    """Return the threads beside the calling one: of the script, and of libraries known to break under fork."""
    own = threading.get_ident()
    # Our own frame in here would be a circle, and keep the script's frames below it with the batches that they hold.
    frames = {ident: frame for ident, frame in sys._current_frames().items() if ident != own}
    found = []
    for thread in threading.enumerate():
        if thread.ident != own and thread.ident is not None and thread is not threading.main_thread():
            at = _of_script(thread, frames.get(thread.ident))
            package = _package(thread, frames.get(thread.ident))
            if at or package:
                found.append({"name": thread.name, "at": at, "package": package})
    return found + _native()


def threads_before_fork(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield the threads that were there when a loader's workers were forked."""
    found = noticed(seen, "threads")
    if found and seen.num_workers > 0 and start_method(seen) == "fork":
        yield {"threads": list(found)[:16], "count": len(found), "num_workers": seen.num_workers}


def _of_script(thread: threading.Thread, frame: Any) -> str:
    """Return the place of the script's code that a thread runs; empty where it runs a library's alone."""
    for name in ("_target", "function"):  # a Thread's, a Timer's
        code = getattr(getattr(thread, name, None), "__code__", None)
        if code is not None and is_of_script(code.co_filename):
            return place(code.co_filename, code.co_firstlineno)
    while frame is not None:
        if is_of_script(frame.f_code.co_filename):
            return place(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    run = getattr(type(thread).run, "__code__", None)
    return place(run.co_filename, run.co_firstlineno) if run is not None and is_of_script(run.co_filename) else ""


def _package(thread: threading.Thread, frame: Any) -> str:
    modules = {type(thread).__module__, getattr(getattr(thread, "_target", None), "__module__", None) or ""}
    while frame is not None:
        modules.add(str(frame.f_globals.get("__name__", "")))
        frame = frame.f_back
    return next((each for each in sorted({name.split(".")[0] for name in modules}) if each in _PACKAGES), "")


def _native() -> list[dict[str, Any]]:
    """Return threads that Python didn't start, as /proc/self/task names them; none where that can't be read."""
    known = {getattr(each, "native_id", None) for each in threading.enumerate()}
    found: dict[str, dict[str, Any]] = {}
    try:
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/comm", encoding="utf-8", errors="replace") as file:
                name = file.read().strip()
            match = _NATIVE.match(name)
            if match is not None and int(task) not in known:
                package = str(match.lastgroup)
                found.setdefault(package, {"name": name, "at": "", "package": package})
    except OSError:
        pass
    return list(found.values())


class Object(NamedTuple):
    """Which object an attribute names, in words, and which are the first entries of a list."""

    number: int
    words: str
    entries: tuple[int, ...]


class Before(NamedTuple):
    """The values of a dataset by path; `kept` are the objects that they name, or others could get their numbers."""

    values: dict[str, Any]
    kept: list[Any]


def notice_values(seen: LoaderStats) -> Before:
    """Return what a dataset's attributes are, as its workers get them."""
    every = list(reachable_objects(seen.dataset))
    return Before(_values(every), [each.value for each in every])


def stale_dataset(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield the attribute that the workers would keep the first value of."""
    if seen.num_workers == 0 or not seen.persistent_workers:
        return
    before = (noticed(seen, "values") or Before({}, [])).values
    now = _values(list(reachable_objects(seen.dataset)))
    for path, value in now.items():
        if path in before and _has_changed(before[path], value) and _is_read(seen.dataset, path):
            yield {**_told(path, before[path], value), "method": "", "num_workers": seen.num_workers}
            return
    yield from _set_epoch(seen)


def _told(path: str, before: Any, now: Any) -> dict[str, Any]:
    first, last = (each.words if isinstance(each, Object) else each for each in (before, now))
    return {"path": path, "first": first, "now": f"another {last}" if last == first else last}


def _set_epoch(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield what a set_epoch of the dataset assigns in this process alone; the old values are put back."""
    for each in list(reachable_objects(seen.dataset)):
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
    for each in reachable_objects(dataset):
        if holder is each.value or f"{each.path}.{name}" == path:
            names.append(names_of_holder(each.value))
    return any(name in each.used or not each.whole for each in names)
