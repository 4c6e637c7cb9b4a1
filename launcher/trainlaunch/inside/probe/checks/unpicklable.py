"""What can't be pickled: of what each worker gets under spawn and forkserver, of a batch under any start method."""

from __future__ import annotations

import contextlib
import pickle
import time
import types
from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.code_places import place
from trainlaunch.inside.probe.base.dataset_objects import children
from trainlaunch.inside.probe.base.loader_facts import start_method
from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.noticing import noticed
from trainlaunch.inside.probe.base.pickling import pickle_error
from trainlaunch.inside.probe.base.sampling import samples
from trainlaunch.inside.probe.checks.handle_in_init import kind_of

PARTS = ("dataset", "collate_fn", "worker_init_fn")
BATCH = 4  # samples of the batch that is tried
SECONDS = 3.0
DEPTH = 24


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield each part that can't be pickled, with the path of the innermost object that can't."""
    # A finding of their own where they break anything, with the same way out.
    handles = tuple(each.held.path for each in noticed(seen, "handle_in_init") or ())
    for part in PARTS:
        with _without_iterator(seen.loader):
            found = culprit(getattr(seen, part), part, handles)
        if found is None or (not seen.num_workers and kind_of(found[1]) is not None):
            continue  # a handle that this process opened while it read samples: a worker opens its own
        # Made for fork, as its locks are by default: under another default they are made for that.
        if not (type(found[1]).__module__.startswith("multiprocessing.") and start_method(seen) == "fork"):
            yield _facts(seen, part, *found)


@contextlib.contextmanager
def _without_iterator(loader: Any) -> Iterator[None]:
    """Let a loader be as it is when its workers start, for a collate_fn that is a method of it."""
    kept = getattr(loader, "_iterator", None)
    if kept is not None:
        loader._iterator = None
    try:
        yield
    finally:
        if kept is not None:
            loader._iterator = kept


def batch(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield what of a batch can't be sent to the script's process, under any start method."""
    found = [each.value for each in samples(seen, BATCH, SECONDS) if each.error is None]
    batched = seen.batch_sampler is not None or seen.batch_size
    if not found:
        return
    try:
        made = seen.collate_fn(found if batched else found[0])
    except Exception:  # a collate function that needs other samples than these
        return
    told = culprit(made, "batch")
    if told is not None:
        yield _facts(seen, "batch", *told)


def culprit(value: Any, path: str, known: tuple[str, ...] = ()) -> tuple[str, Any, Exception] | None:
    """Return path, object and error of the innermost thing that can't be pickled; None where all but `known` can."""
    error = pickle_error(value)
    if error is None:
        return None
    deadline = time.monotonic() + SECONDS
    for _ in range(DEPTH):
        inner = _failing_part(value, path, known, deadline)
        if inner is None:
            return None if any(each.startswith(path) for each in known) else (path, value, error)
        suffix, value, error = inner
        path += suffix
    return path, value, error


def _failing_part(value: Any, path: str, known: tuple[str, ...], deadline: float) -> tuple[str, Any, Exception] | None:
    for suffix, each in _parts(value):
        if time.monotonic() > deadline:
            return None
        error = pickle_error(each) if path + suffix not in known else None
        if error is not None:
            return suffix, each, error
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what pickling an object would pickle of it: its state where it gives one, else what it holds."""
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        yield from children(value)
        return
    if isinstance(value, types.FunctionType):  # goes by its name
        return
    try:
        reduced = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    except Exception:  # it is itself what can't be pickled
        return
    own = {id(each): suffix for suffix, each in children(value)}
    state = reduced[2] if isinstance(reduced, tuple) and len(reduced) > 2 else None
    states = state if isinstance(state, tuple) else (state,)
    named = [(f".{name}", each) for part in states if isinstance(part, dict) for name, each in part.items()]
    arguments = [(own.get(id(each), ""), each) for each in (reduced[1] if isinstance(reduced, tuple) else ())]
    yield from named
    yield from ((suffix, each) for suffix, each in arguments if suffix)
    yield from children(value) if not named else ()


def _facts(seen: Seen, part: str, path: str, value: Any, error: Exception) -> dict[str, Any]:
    code = getattr(value, "__code__", None)
    return {
        "part": part,
        "path": path,
        "class": type(value).__name__,
        "name": getattr(value, "__qualname__", "") if callable(value) else "",
        "at": place(code.co_filename, code.co_firstlineno) if code is not None else "",
        "error": f"{type(error).__name__}: {error}"[:300],
        "num_workers": seen.num_workers,
        "start_method": start_method(seen),
    }
