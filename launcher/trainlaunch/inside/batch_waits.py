"""Tells who notes it when this process begins to wait for a batch of a DataLoader, and when that is over.

A step of a small model leaves little of the caches, so what is done for every batch stands in one function, with few
names and few objects. What is done for some is a method of who notes: of `beat`, which tells that a process waits,
and of `records`, which tell how long.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
from typing import Any

BATCHES, WAITED, SINCE = 3, 4, 8  # where a loop's numbers have what changes with every batch
NOBODY = b"%-15d" % 0  # who trains waits since 0
WAITING: dict[int, int] = {}  # since when threads are in an iterator's __next__: a wait within one is part of it
_clock, _BOOTTIME = time.clock_gettime_ns, time.CLOCK_BOOTTIME
TO_EPOCH = time.time_ns() - _clock(_BOOTTIME)


class Loop:
    """One pass over a loader. The numbers of a `plain` one need only be added to; `era` tells processes apart."""

    __slots__ = ("batches", "begins", "era", "numbers", "plain")

    def __init__(self, numbers: Any) -> None:
        self.era: object = None
        self.numbers, self.batches, self.begins, self.plain = numbers, 0, True, False


class Notes:
    """Who notes the waits of a class of iterators.

    None of them raises, nor needs to be safe from a handler of a signal that loads data in the same thread.
    """

    beat: Any = None
    records: Any = None

    def __init__(self, worker: Any) -> None:
        self.worker = worker  # torch's get_worker_info
        self.era = object()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self.era = object()
        WAITING.clear()
        for each in (self.beat, self.records):
            if each is not None:
                each.begin()

    def add_loop(self, iterator: Any, loop: Loop | None = None) -> Loop | None:
        """Return the loop that an iterator begins in this process; None in a worker, or within another's wait."""
        if self.worker() is not None or threading.get_ident() in WAITING:
            return None
        if loop is None:
            loop = Loop([0] * (SINCE + 1)) if self.records is None else self.records.loop()
        loop.era = self.era
        object.__setattr__(iterator, "_trainlaunch_wait", loop)
        return loop

    def enter(self, loop: Loop) -> None:
        """Note that a loop which isn't plain begins to wait."""
        if self.records is not None:
            self.records.enter(loop)

    def leave(self, loop: Loop, begun: int, ended: int, came: bool) -> None:
        """Note that it is over, with a batch or with the loop's end."""
        loop.batches += came
        if self.records is not None:
            self.records.leave(loop, begun, ended, came)
        else:
            loop.plain = loop.batches > 1
        loop.begins = not came
        loop.plain = loop.plain and came
        if self.beat is not None and came:
            self.beat.count()

    def end(self, loop: Loop, thread: int) -> None:
        """Note that a wait is over without a batch; what was forked in it had not begun to wait."""
        begun = WAITING.pop(thread, None)
        if begun is not None:
            self.leave(loop, begun, _clock(_BOOTTIME), False)
        if self.beat is not None:
            self.beat.settle()


def follow(base: Any, listener: Any, worker: Any) -> None:
    """Make a listener the `beat` or the `records` of the waits in `base.__next__`."""
    notes = getattr(base.__next__, "_trainlaunch", None) or _wrap(base, Notes(worker))
    listener.notes = notes
    setattr(notes, listener.role, listener)
    hide(*vars(type(listener)).values())


def _wrap(base: Any, notes: Notes) -> Notes:
    """Put the only wrapper around `base.__next__`."""
    base._trainlaunch_wait = None
    base.__next__ = _noting(base.__next__, notes)
    base.__next__._trainlaunch = notes
    hide(base.__next__, *vars(Notes).values())
    return notes


def _noting(take: Any, notes: Notes) -> Any:
    waiting, ident, clock, boottime = WAITING, threading.get_ident, _clock, _BOOTTIME

    @functools.wraps(take)
    def __next__(self: Any) -> Any:  # noqa: N807 - a call would cost more than what it did
        thread, loop = ident(), self._trainlaunch_wait
        if loop is None or loop.era is not notes.era:
            loop = notes.add_loop(self)
        if loop is None or thread in waiting:
            return take(self)
        try:
            waiting[thread] = begun = clock(boottime)
            if not loop.plain:
                notes.enter(loop)
            loop.numbers[SINCE] = begun + TO_EPOCH
            beat = notes.beat
            if beat is not None:
                if begun >= beat.until:
                    beat.refresh(begun)
                if len(waiting) == 1:
                    beat.page[beat.since] = beat.text
            batch, ended = take(self), clock(boottime)
            if thread in waiting:  # else in a process that was forked meanwhile, which never began to wait
                if loop.plain:
                    loop.numbers[WAITED] += ended - begun
                    loop.numbers[BATCHES] += 1
                    loop.numbers[SINCE] = -ended - TO_EPOCH
                else:
                    notes.leave(loop, begun, ended, True)
                del waiting[thread]
                if beat is not None:
                    beat.page[beat.since] = NOBODY
                    if waiting:
                        beat.settle()
        except BaseException:
            notes.end(loop, thread)
            raise
        return batch

    return __next__


def hide(*functions: Any) -> None:
    """Keep torch.compile from tracing functions, as it traces nothing of a DataLoader, without loading it."""
    frames = getattr(getattr(sys.modules.get("torch._C"), "_dynamo", None), "eval_frame", None)
    for each in functions:
        with contextlib.suppress(Exception):  # an old torch, and a method, which takes no attribute
            each._torchdynamo_disable = True
        with contextlib.suppress(Exception):
            frames.skip_code(each.__code__)  # type: ignore[union-attr]
