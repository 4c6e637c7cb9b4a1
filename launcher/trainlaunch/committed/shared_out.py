"""Work on many files, shared out among the CPUs of this process, with results in order."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

One = TypeVar("One")
Made = TypeVar("Made")


def shared_out(
    function: Callable[[One], Made], items: Sequence[One], *, per_process: int, chunk: int
) -> Iterator[Made]:
    """Yield what `function` makes of each item, in order; fewer than twice `per_process` stay in this process.

    It and its results must be picklable. No thread may run yet: the processes are forked.
    """
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    workers = min(cpus, len(items) // per_process)
    if workers < 2:
        yield from map(function, items)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # What the first one imports and compiles, forked children have in memory already.
    yield function(items[0])
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(workers, context, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))
    try:
        yield from pool.map(function, items[1:], chunksize=chunk)
    finally:
        pool.shutdown(cancel_futures=True)
