"""What each worker yields of an iterable dataset: hashes of its first samples."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from trainlaunch.inside.probe.base.digest import digest, parts_of
from trainlaunch.inside.probe.base.fork_copy import apart
from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.own_loaders import trial_loader

SECONDS, READING, MOST_WORKERS, SAMPLES = 60.0, 10.0, 16, 256


class Stream(NamedTuple):
    """Hashes of each worker's samples in order, and whether every worker came to its end; texts of their parts."""

    workers: list[list[str]]
    ended: bool
    parts: list[list[list[str]]]


def _of_worker(data: Any) -> tuple[int, str, list[str]]:
    from torch.utils.data import get_worker_info

    return get_worker_info().id, digest(data), parts_of(data[0] if isinstance(data, list) and len(data) == 1 else data)


_known: dict[int, tuple[Seen, Stream]] = {}  # with what is seen, or another could get its id


def stream(seen: Seen) -> Stream:
    """Return what the loader's workers yield, of two where it has fewer; measured once. Raises what `apart` raises."""
    key = id(seen)
    if key not in _known:
        _known[key] = seen, Stream(*apart(lambda: _read(seen), SECONDS))
    return _known[key][1]


def _read(seen: Seen) -> tuple[list[list[str]], bool, list[list[list[str]]]]:
    workers = max(2, min(seen.num_workers, MOST_WORKERS))
    found: list[list[str]] = [[] for _ in range(workers)]
    parts: list[list[list[str]]] = [[] for _ in range(workers)]
    deadline = 0.0
    for worker, each, own in trial_loader(seen, workers, _of_worker):
        deadline = deadline or time.monotonic() + READING  # from the first sample on
        found[worker].append(each)
        parts[worker].append(own)
        # Workers take turns: once one gives its second sample, those without a first have come to their end.
        if max(map(len, found)) > SAMPLES or (time.monotonic() > deadline and max(map(len, found)) > 1):
            return found, False, parts[:2]
    return found, True, parts[:2]
