"""A generator of random numbers in the dataset gives the same numbers in all workers."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.probe.base.digest import states
from trainlaunch.inside.probe.base.draws import draws
from trainlaunch.inside.probe.base.fork_copy import apart
from trainlaunch.inside.probe.base.loader_stats import Seen

SECONDS = 10.0
MOST = 10  # paths that are named
GLOBAL = ("numpy.random", "random")


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield one finding of generators that start equal in all workers, move on with each sample, and stay equal."""
    if seen.iterable or not seen.trained:
        return
    found = draws(seen)
    first, second = found.epochs[0]
    advancing = list(found.advancing())
    equal = [path for path in advancing if second.get(path, [])[:3] == first[path][:3]]
    for path in found.sown():
        yield _facts(seen, path, first[path], "each sample")
    if equal:
        yield {**_facts(seen, equal[0], first[equal[0]], "equal"), "others": equal[1:MOST]}
    if seen.worker_init_fn is not None:
        ignoring = apart(lambda: _ignoring(seen), SECONDS)
        for path in ignoring:
            if path in advancing and second.get(path) != first[path]:
                yield _facts(seen, path, first[path], "low bits")


def _facts(seen: Seen, path: str, course: list[str], how: str) -> dict[str, Any]:
    kind = course[0].split(" ")[0]
    return {"generator": path, "class": kind, "how": how, "num_workers": seen.num_workers}


def _ignoring(seen: Seen) -> list[str]:
    """Return the global generators that worker_init_fn seeds from torch's seed, but not from its low 32 bits."""
    seeds = [high * 2**32 + low for high in (5, 6) for low in (7, 8, 2**31)]
    starts = [_start(seen, seed) for seed in seeds]
    return [
        path
        for path in GLOBAL
        if path in starts[0] and len({each[path] for each in starts[:3]}) == 1 and starts[0][path] != starts[3][path]
    ]


def _start(seen: Seen, seed: int) -> dict[str, str]:
    """Return the states of generators after worker_init_fn in a worker 0 whose seed is `seed`."""
    import torch
    from torch.utils.data._utils import worker

    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    torch.manual_seed(seed)
    worker._worker_info = worker.WorkerInfo(id=0, num_workers=2, seed=seed, dataset=seen.dataset)
    seen.worker_init_fn(0)
    return states()
