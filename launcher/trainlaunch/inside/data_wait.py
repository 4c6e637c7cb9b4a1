"""Notes how long each loop over a DataLoader waits for its batches, in a page of numbers that `run` and `up` read.

A record belongs to a process, the line that iterates and what is done with the batches: 10 native integers of 8 bytes,
then that line as text. Times are nanoseconds, BEGUN, LATEST and SINCE since the epoch. SINCE is when the wait that goes
on began, or less than 0: when the last one ended. FIRST, which is within WAITED, is what the first batches of loops
took, with the start of their workers.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import mmap
import os
import threading
import time
import types
from typing import Any

from trainlaunch.inside.batch_waits import BATCHES, SINCE, TO_EPOCH, WAITED, WAITING, Loop, follow, hide
from trainlaunch.inside.code_places import caller
from trainlaunch.inside.process import rank

RECORD, RECORDS, NUMBERS = 128, 64, 16  # bytes; records of a page; numbers that a record has room for
PID, RANK, PHASE, FIRST, BEGUN, LATEST = 0, 1, 2, 5, 6, 7  # beside BATCHES, WAITED and SINCE
PLACE = 80  # where the text begins in a record
TRAINS, EVALUATES, ASIDE = 1, 2, 3  # PHASE; ASIDE: a thread loads for another one, whose waits nobody knows
PAGE = os.path.join(os.path.dirname(__file__), "data_wait")
_now = time.perf_counter_ns


class _Thread(threading.local):
    """What a thread did: whether a loader's __iter__ is timed already, whether it trained."""

    timed = trained = False


class Pass(Loop):
    """One pass over a loader: its place and phase, and what it has added to the numbers of its record."""

    __slots__ = ("first", "phase", "place", "sequence", "waited")

    def __init__(self, place: str, phase: int, numbers: Any) -> None:
        super().__init__(numbers)
        self.place, self.phase = place, phase
        self.waited = self.first = self.sequence = 0


class DataWait:
    """The records of this process. An error ends the noting, and voids what was noted: a part of it would mislead."""

    role = "records"
    notes: Any = None

    def __init__(self, page: str, torch: Any) -> None:
        self._path, self._torch = page, torch
        self._sequence: Any = None  # of nodes that this thread puts into graphs for gradients
        self._thread = _Thread()
        self.on = True
        self.begin()

    def __reduce__(self) -> Any:
        """Be one that is off in another process, without a module of ours: a script's class may go there whole."""
        return types.SimpleNamespace, (), {"on": False}

    def begin(self) -> None:
        """Begin without records: a forked process has its parent's."""
        self._lock = threading.Lock()
        self._page: Any = None
        self._records: dict[Any, Any] = {}

    def loop(self) -> Loop:
        """Return the loop that this thread begins."""
        try:
            return self._loop(self._guessed())
        except Exception:
            self._void()
            return Loop([0] * NUMBERS)

    def enter(self, loop: Any) -> None:
        """Note what the batches before its wait were for."""
        if not self.on:
            return
        try:
            if loop.batches and loop.phase != TRAINS:
                if self._sequence() != loop.sequence:  # this thread builds a graph for gradients between its batches
                    self._thread.trained = True
                    self._move(loop, TRAINS)
            elif loop.batches == 1 and self._sequence() == loop.sequence:
                self._move(loop, self._guessed(trains=False))
        except Exception:
            self._void()

    def leave(self, loop: Any, begun: int, ended: int, came: bool) -> None:
        """Note that it is over; of a loop that trains nothing but sums changes after its second batch."""
        if not self.on:
            return
        try:
            numbers, took = loop.numbers, ended - begun
            loop.waited += took
            numbers[WAITED] += took
            numbers[SINCE] = -ended - TO_EPOCH
            if loop.begins:
                loop.first += took
                numbers[FIRST] += took
            if came:
                numbers[BATCHES] += 1
                if loop.phase != TRAINS or loop.batches == 1:
                    loop.sequence = self._sequence()
                loop.plain = loop.phase == TRAINS and loop.batches > 1
        except Exception:
            self._void()

    def start(self, iter_of: Any, loader: Any, kind: type) -> Any:
        """Return a loader's iterator, of that kind or a wrapper of one: what it took belongs to its first batch."""
        self._thread.timed, begun = threading.get_ident() in WAITING, _now()
        iterator = iter_of(loader)
        if not self._thread.timed and isinstance(iterator, kind):
            self._thread.timed = True  # a class derived from DataLoader has DataLoader's own in it
            self._started(iterator, _now() - begun)
        return iterator

    def _started(self, iterator: Any, took: int) -> None:
        try:
            loop = self._loop(self._guessed())
            self.notes.add_loop(iterator, loop)
            for number in (WAITED, FIRST):
                loop.numbers[number] += took
            loop.waited = loop.first = took
        except Exception:
            self._void()

    def _guessed(self, *, trains: bool | None = None) -> int:
        """Return what the next batches are for, as far as this thread and its grad mode tell."""
        if threading.current_thread() is not threading.main_thread() and not self._thread.trained:
            return ASIDE
        return TRAINS if (self._torch.is_grad_enabled() if trains is None else trains) else EVALUATES

    def _move(self, loop: Pass, phase: int) -> None:
        """Move what a loop has added to the record of another phase."""
        if phase == loop.phase:
            return
        old, loop.phase, loop.numbers = loop.numbers, phase, self._numbers(loop.place, phase)
        for number, value in ((BATCHES, loop.batches), (WAITED, loop.waited), (FIRST, loop.first)):
            old[number] -= value
            loop.numbers[number] += value
        loop.numbers[BEGUN] = min(loop.numbers[BEGUN], old[BEGUN])
        loop.numbers[LATEST] = max(loop.numbers[LATEST], old[LATEST])

    def _loop(self, phase: int) -> Pass:
        if self._sequence is None:  # torch is imported by now
            self._sequence = getattr(self._torch._C._autograd, "_get_sequence_nr", None) or self._grad_mode
        place = caller()
        return Pass(place, phase, self._numbers(place, phase))

    def _grad_mode(self) -> int:
        """Return another number each time where gradients are on: what an old torch tells."""
        return _now() if self._torch.is_grad_enabled() else 0

    def _numbers(self, place: str, phase: int) -> Any:
        """Return the numbers of a record, taken where this process has none of it yet. Raises OSError."""
        with self._lock:
            found = self._records.get((place, phase))
            if found is None:
                found = self._records[place, phase] = self._taken(place, phase)
            return found

    def _taken(self, place: str, phase: int) -> Any:
        with open(self._path, "a+b") as own:
            fcntl.lockf(own, fcntl.LOCK_EX)  # until it is closed
            if self._page is None:
                self._page = _mapped(own)
            for at in range(0, RECORD * RECORDS, RECORD):
                numbers = self._page[at : at + PLACE].cast("q")
                if not numbers[PID]:
                    text = place.encode(errors="replace")[-(RECORD - PLACE) :]
                    self._page[at + PLACE : at + PLACE + len(text)] = text
                    now = time.time_ns()
                    numbers[RANK], numbers[PHASE], numbers[BEGUN], numbers[LATEST] = rank(), phase, now, now
                    numbers[PID] = os.getpid()
                    return numbers
        return memoryview(bytearray(PLACE)).cast("q")  # the page is full, which its reader sees

    def _void(self) -> None:
        self.on = False
        for numbers in [*self._records.values()]:  # a thread may add one
            numbers[PHASE] = 0


def _mapped(own: Any) -> memoryview:
    """Return the page of an open file, which others have locked out. Raises OSError."""
    if own.seek(0, os.SEEK_END) < RECORD * RECORDS:  # written, as a hole of a full /dev/shm kills who maps it
        own.write(bytes(RECORD * RECORDS))
        own.flush()
    return memoryview(mmap.mmap(own.fileno(), RECORD * RECORDS))


def install() -> None:
    """Make every DataLoader's iterator note its waits; a page without records says that none was iterated.

    Nobody need have asked for it, so nothing is said where it can't be.
    """
    import torch
    from torch.utils.data import dataloader

    with contextlib.suppress(Exception):
        with open(PAGE, "a+b") as own:
            fcntl.lockf(own, fcntl.LOCK_EX)
            _mapped(own)
        waits, worker = DataWait(PAGE, torch), dataloader.get_worker_info
        follow(dataloader._BaseDataLoaderIter, waits, worker)
        _follow_starts(dataloader.DataLoader, dataloader._BaseDataLoaderIter, waits, worker)


def _follow_starts(loaders: Any, base: Any, waits: DataWait, worker: Any) -> None:
    """Time `__iter__` of DataLoader and of classes derived from it later, as torchdata's is: it starts workers."""

    def wrap(owner: Any) -> None:
        start = owner.__dict__.get("__iter__")
        if not isinstance(start, types.FunctionType):  # None too, and what can't be called with the loader
            return

        @functools.wraps(start)
        def __iter__(self: Any) -> Any:  # noqa: N807
            return waits.start(start, self, base) if waits.on and worker() is None else start(self)

        hide(__iter__, waits.start)
        owner.__iter__ = __iter__

    own = loaders.__dict__.get("__init_subclass__")

    def init_subclass(cls: Any, **named: Any) -> None:
        if own is None:
            super(loaders, cls).__init_subclass__(**named)
        else:
            own.__func__(cls, **named)
        with contextlib.suppress(Exception):  # a class that takes no other method
            wrap(cls)

    loaders.__init_subclass__ = classmethod(init_subclass)  # type: ignore[arg-type]
    wrap(loaders)
