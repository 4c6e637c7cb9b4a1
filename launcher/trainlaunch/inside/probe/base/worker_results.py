"""Each batch is measured where it is made, in a worker or in the script's own process; it comes back through a file."""

from __future__ import annotations

import functools
import json
import os
import tempfile
import time
import weakref
from collections.abc import Callable
from typing import Any

from trainlaunch.inside.probe.base.loader_stats import Fetched
from trainlaunch.inside.probe.base.transfer import Weight, weigh

VARIABLE = "TRAINLAUNCH_PROBE_RESULTS"  # tells spawned workers the path
STACKS = "-stacks"  # of the file beside it, where workers write where they stand


class Measuring:
    """Wraps a fetcher's `fetch`; `sink` gets what was measured."""

    def __init__(self, sink: Callable[[Fetched], None]) -> None:
        self._sink: Callable[[Fetched], None] | None = sink
        self._largest: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # bytes, by fetcher

    def wrap(self, fetcher: Any) -> None:
        """Measure what the class `fetcher` fetches from now on."""
        fetch = fetcher.fetch

        @functools.wraps(fetch)
        def measured(this: Any, index: Any) -> Any:
            if self._sink is None:
                return fetch(this, index)
            collate, spent = this.collate_fn, [0.0]

            def timed(samples: Any) -> Any:
                begun = time.perf_counter()
                batch = collate(samples)
                spent[0] += time.perf_counter() - begun
                return batch

            this.collate_fn = timed
            begun = time.perf_counter()
            try:
                batch = fetch(this, index)
            finally:
                this.collate_fn = collate
            self._measure(this, batch, index if this.auto_collation else None, time.perf_counter() - begun, spent[0])
            return batch

        fetcher.fetch = measured

    def _measure(self, fetcher: Any, batch: Any, indices: Any, seconds: float, collate_seconds: float) -> None:
        from torch.utils.data import get_worker_info

        sink = self._sink
        if sink is None:
            return
        self._sink = None  # what measuring fetches is no batch
        try:
            info, weight, problem = get_worker_info(), Weight([], 0), ""
            try:
                weight = weigh(batch)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"[:200]
            pages, before = weight.pages, self._largest.get(fetcher, -1)
            largest, self._largest[fetcher] = pages > before, max(pages, before)
            storages = weight.storages if largest and not problem else None
            count, worker = None if indices is None else len(indices), -1 if info is None else info.id
            times = (seconds, collate_seconds)
            sink(Fetched(os.getpid(), worker, count, weight.size, pages, storages, weight.pickled, *times, problem))
        except OSError:
            return  # the script's own process, which reads, has ended
        finally:
            self._sink = sink


class Results:
    """One process's file, to which its workers append a line for each batch."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.path = os.environ.get(VARIABLE, "")
        self._read = 0

    def open(self) -> None:
        """Make the file of this process, in the folder of the delivery or where temporary files go."""
        ours = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
        folder = ours if os.access(ours, os.W_OK) else None
        descriptor, self.path = tempfile.mkstemp(prefix=".trainlaunch-probe-", dir=folder)
        os.close(descriptor)
        os.close(os.open(self.path + STACKS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        self.owner = os.getpid()
        os.environ[VARIABLE] = self.path

    def add(self, fetched: Fetched) -> None:
        """Append one batch; called in a worker. Raises OSError."""
        line = json.dumps(fetched).encode("ascii") + b"\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)  # never makes one: its owner may have ended
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def read(self) -> list[Fetched]:
        """Return what came since it was last read."""
        with open(self.path, "rb") as file:
            file.seek(self._read)
            text = file.read()
        text = text[: text.rfind(b"\n") + 1]
        self._read += len(text)
        return [Fetched(*json.loads(line)) for line in text.splitlines()]

    def remove(self) -> None:
        """Remove the file, where it is this process's own."""
        if self.path and self.owner == os.getpid():
            os.unlink(self.path)
            os.unlink(self.path + STACKS)
            os.environ.pop(VARIABLE, None)
            self.path = ""
