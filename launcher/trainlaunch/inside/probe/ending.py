"""Ends the script once enough was seen, and reports; or reports when the script ends by itself."""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import math
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from trainlaunch.inside.marked import emit
from trainlaunch.inside.probe import checks
from trainlaunch.inside.probe.base import loader_facts
from trainlaunch.inside.probe.base.isolation import CheckTimeout, limited, run_in_fork
from trainlaunch.inside.probe.base.loader_stats import Fetched, LoaderStats
from trainlaunch.inside.probe.base.transfer import weigh
from trainlaunch.inside.probe.loops import Loops
from trainlaunch.inside.process import rank

VARIABLE = "TRAINLAUNCH_PROBE"
_GRACE = 5.0  # seconds that the script's own thread has to come to its next batch, once the time is over
_PICKLING = 20.0  # seconds for one dataset
_CHECKS_TIMEOUT_SECONDS = 150.0  # seconds for checks, and all else after the last batch
_BATCHES = 8
_SECONDS = 10.0


class Settings(NamedTuple):
    """The script ends after `batches` of the loader that trains, or `seconds` after its first batch came.

    That may take as long, too: a first batch that is later ends it.

    `through`: the script goes on to its own end, and each of its loops is cut to `batches`. `deadline`: seconds after
    torch was imported at which it ends anyhow, 0 for none: whoever started it may be gone.
    """

    batches: int = 32  # twice what Hugging Face's Trainer holds with 8 steps of accumulation
    seconds: float = 60.0
    through: bool = False
    deadline: float = 0.0


def read_settings() -> Settings:
    """Return the settings of this process; what isn't set has its default."""
    stated = json.loads(os.environ.get(VARIABLE) or "{}")
    return Settings(**{name: stated[name] for name in Settings._fields if name in stated})


class Ending:
    """Decides when enough was seen of `loops`, and reports once."""

    def __init__(self, loops: Loops, settings: Settings) -> None:
        self._loops = loops
        self._settings = settings
        self._begun: float | None = None
        self._came: float | None = None  # when the first batch did
        self._once = threading.Lock()
        self._leave_at = math.inf  # time.monotonic() at which the process ends, whatever it still does

    def begins(self) -> None:
        """Start the clock, with the first iterator."""
        if self._begun is not None:
            return
        self._begun = time.monotonic()
        emit("start", loader_facts.start())
        for run in (self._watch, self._guard):  # both now: at a script's end Python starts no thread any more
            threading.Thread(target=run, name="trainlaunch-probe", daemon=True).start()

    def comes(self, seen: LoaderStats) -> None:
        """End the script where a batch is asked for and enough was seen; in the thread that asks."""
        if self._late():
            self._exit("seconds")
        if not self._settings.through and seen.trained and seen.batches >= self._settings.batches:
            self._exit("batches")

    def came(self) -> None:
        """A batch came: from the first one on, the seconds of batches count."""
        self._came = self._came or time.monotonic()

    def ends(self) -> None:
        """Report at the script's own end."""
        if self._begun is not None and self._loops.pid == os.getpid() and self._once.acquire(blocking=False):
            self._leave_at = time.monotonic() + _CHECKS_TIMEOUT_SECONDS
            self._report("script")
            self._leave_at = math.inf

    def _late(self) -> bool:
        since = self._came or self._begun
        return since is not None and time.monotonic() - since > self._settings.seconds

    def _watch(self) -> None:
        """End a script that asks for no batch any more, or waits for one."""
        while not self._late():
            time.sleep(min(1.0, self._settings.seconds))
        time.sleep(_GRACE)
        self._exit("seconds")

    def _guard(self) -> None:
        """End checks that take too long."""
        while time.monotonic() < self._leave_at:
            time.sleep(1.0)
        emit("end", {"reason": "checks", "seconds": time.monotonic() - (self._begun or 0.0)})
        _leave()

    def _exit(self, reason: str) -> NoReturn:
        if self._once.acquire(blocking=False):
            self._leave_at = time.monotonic() + _CHECKS_TIMEOUT_SECONDS
            try:
                self._report(reason)
            finally:
                _leave()
        while True:  # another thread reports, and ends the process
            time.sleep(1.0)

    def _report(self, reason: str) -> None:
        self._loops.paused = True
        self._loops.collect()
        now = time.monotonic()
        facts = {"reason": reason, "seconds": now - (self._begun or now)}
        trains = _trains(self._loops.seen)
        unseen = self._loops.never_iterated(_loaders_alive()) if rank() == 0 else []
        for seen in self._loops.seen:
            emit("loader", loader_facts.loader(seen, seen is trains))
            _guarded("batches", seen, lambda seen=seen: [("batches", loader_facts.batches(seen))])
        if rank() == 0:
            for seen in unseen:
                _guarded("batches", seen, lambda seen=seen: _directly(seen, self._loops.seen))
            for seen in (*self._loops.seen, *unseen):
                _guarded("dataset", seen, lambda seen=seen: [("dataset", loader_facts.dataset(seen))])
            emit("batches-end", facts)
            for kind, found in checks.run((*self._loops.seen, *unseen)):
                emit(kind, found)
        self._loops.results.remove()
        emit("end", {**facts, "checks_seconds": time.monotonic() - now})


def end_late(seconds: float) -> None:
    """End this process after so many seconds, if it is none that multiprocessing started: those end with theirs."""

    def end() -> None:
        time.sleep(seconds)
        emit("end", {"reason": "deadline", "seconds": seconds})
        _leave()

    if seconds and multiprocessing.parent_process() is None:
        threading.Thread(target=end, name="trainlaunch-probe", daemon=True).start()


def _directly(seen: LoaderStats, others: list[LoaderStats]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the records of a loader that no loop has come to yet."""
    fetch_directly(seen)
    alike = next((each for each in others if each.kind is seen.kind and each.batches > 1), None)
    yield "loader", loader_facts.loader(seen, trains=False)
    held = loader_facts.batches_held(alike) if alike else None
    yield "batches", {**loader_facts.batches(seen), "batches_held": held}


def _guarded(what: str, seen: LoaderStats, make: Any) -> None:
    """Emit records; one that can't be had is said to be off."""
    try:
        with limited(_PICKLING):
            for kind, facts in make():
                emit(kind, facts)
    except (CheckTimeout, Exception) as problem:
        reason = f"{type(problem).__name__}: {problem}"[:500]
        emit("off", {"defect": what, "loader": seen.number, "place": seen.place, "reason": reason})


def _trains(loaders: list[LoaderStats]) -> LoaderStats | None:
    """Return the loader that trains: the first that backward or a step followed, else the longest one with autograd."""
    trained = next((each for each in loaders if each.trained), None)
    return trained or max((each for each in loaders if each.with_grad), key=lambda each: each.with_grad, default=None)


def _loaders_alive() -> list[Any]:
    from torch.utils.data import DataLoader

    return [each for each in gc.get_objects() if issubclass(type(each), DataLoader)]


def _leave() -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(0)


def fetch_directly(seen: LoaderStats) -> None:
    """Note what the first batches of a loader weigh. Raises RuntimeError with what its dataset raises.

    In a copy of this process: what the dataset opens meanwhile must not be open in workers that checks start.
    """
    seen.fetched += [Fetched(*each) for each in run_in_fork(lambda: _fetched(seen), 2 * _SECONDS)]


def _fetched(seen: LoaderStats) -> list[Fetched]:
    from torch.utils.data.dataloader import _DatasetKind

    loader, begun = seen.loader, time.monotonic()
    fetcher = _DatasetKind.create_fetcher(
        loader._dataset_kind, seen.dataset, loader._auto_collation, seen.collate_fn, seen.drop_last
    )
    found, largest = [], -1
    for index in itertools.islice(iter(loader._index_sampler), _BATCHES):
        started = time.perf_counter()
        try:
            weight = weigh(fetcher.fetch(index))
        except StopIteration:
            break
        pages, spent = weight.pages, time.perf_counter() - started
        storages, largest = (weight.storages if pages > largest else None), max(pages, largest)
        count = len(index) if loader._auto_collation else None
        found.append(Fetched(os.getpid(), -1, count, weight.size, pages, storages, weight.pickled, spent, 0.0))
        if time.monotonic() - begun > _SECONDS:
            break
    return found
