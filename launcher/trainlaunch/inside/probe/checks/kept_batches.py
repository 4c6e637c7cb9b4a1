"""The script keeps every batch that it gets: tensors of workers stay in /dev/shm as long as a name leads to them."""

from __future__ import annotations

import itertools
import sys
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.code_places import is_of_script, place
from trainlaunch.inside.probe.base.dataset_objects import attributes, is_array, parts
from trainlaunch.inside.probe.base.loader_stats import Seen

FEWEST = 4  # batches
PART = 0.9  # of all batches so far; a window of the last few is kept on purpose
NAMELESS = 16  # batches, where no variable is found: a trainer may take as many before it makes a step
_CONTAINERS = (list, tuple, deque, dict, set)


def ends(seen: Seen) -> None:
    """Note at the end of a loop what is kept; what its function returns may have no name later."""
    seen.noticed.setdefault("kept", next(_kept(seen), None))


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield the variable that holds the batches of a loader with workers; a pinned batch is a copy already."""
    known = seen.noticed.get("kept")
    yield from [known] if known else itertools.islice(_kept(seen), 1)


def _kept(seen: Seen) -> Iterator[dict[str, Any]]:
    done = seen.passes[-1] if seen.passes else 0
    held = seen.held.alive()
    if not seen.num_workers or seen.pins or held < max(FEWEST, PART * done):
        return
    storages = next((each.storages for each in seen.fetched if each.storages), None) or []
    told = {"held": round(held), "batches": done, "bytes": seen.held.size, "tensors": len(storages)}
    for name, container, at in _variables(_main_frame()):
        if len(container) >= max(FEWEST, PART * done) and _holds_batches(container):
            yield {"name": name, "at": at, **told}
    if done >= NAMELESS:
        yield {"name": "", "at": "", **told}


def _main_frame() -> Any:
    return sys._current_frames().get(threading.main_thread().ident or 0)


def _variables(frame: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield (name, container, place) of the script's variables, and of the attributes of what they name."""
    done: set[int] = set()
    while frame is not None:
        code = frame.f_code
        if is_of_script(code.co_filename):
            at = place(code.co_filename, frame.f_lineno)
            for name, value in list(frame.f_locals.items()) + list(frame.f_globals.items()):
                for path, each in [(name, value), *((name + suffix, one) for suffix, one in attributes(value))]:
                    if isinstance(each, _CONTAINERS) and id(each) not in done:
                        done.add(id(each))
                        yield path, each, at
        frame = frame.f_back


def _holds_batches(container: Any) -> bool:
    """Whether the entries of a container hold tensors that came from a worker, and aren't a dataset's own."""
    entries = list(itertools.islice(container.values() if isinstance(container, dict) else container, 64))
    shared = [each for each in entries if any(_is_shared(one) for one in _arrays(each))]
    return len(shared) >= PART * len(entries)


def _arrays(entry: Any, depth: int = 0) -> Iterator[Any]:
    if is_array(entry):
        yield entry
    elif depth < 3:
        for _, each in itertools.islice(parts(entry), 32):
            yield from _arrays(each, depth + 1)


def _is_shared(array: Any) -> bool:
    return bool(hasattr(array, "is_shared") and array.device.type == "cpu" and array.is_shared())
