"""The timing of one setting: batches, waits and counters between the end of its warm-up and now."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from statistics import median
from typing import Any

from trainlaunch.inside.tune.meter import Counters, counters, shm_used, synchronize
from trainlaunch.inside.tune.task import Setting

MIN_BATCHES = 8
MAX_TIMES_LONGER = 3  # times the seconds of a setting that a few slow batches may take
SAMPLE_SECONDS = 0.1
PAUSE, PAUSE_SECONDS = 20, 1.0  # times the loop's usual step, and at least so long: an evaluation, a checkpoint
USUAL = 32  # steps that tell what is usual


class Totals:
    """Batches, the seconds that they took, and those of them in which the loop waited."""

    def __init__(self) -> None:
        self.batches, self.seconds, self.waited = 0, 0.0, 0.0

    def add(self, batches: int, seconds: float, waited: float) -> None:
        """Count some more."""
        self.batches, self.seconds, self.waited = self.batches + batches, self.seconds + seconds, self.waited + waited

    @property
    def rate(self) -> float:
        """Batches per second."""
        return self.batches / self.seconds if self.seconds else 0.0


class Begun(Enum):
    """How a pass has begun, which says what can be known from it."""

    SCRIPTS = "with an epoch of the script"  # where the script breaks it off, it is as whole as its epochs are
    OURS = "with an iterator that took the place of the script's"  # whole if it comes to the end of the data
    FIRST = "with the process's first iterator"  # the first steps of a script are slower than all others
    MIDDLE = "somewhere in an epoch"


class TimedPass:
    """One iterator's life. The first `drop` batches are warm-up: workers start, and the queue fills or empties."""

    def __init__(self, drop: int, how: Begun, begun: float) -> None:
        self.begun = self.last = begun
        self.how = how
        self.drop = drop
        self.batches = 0
        self.waited = 0.0
        self.startup: float | None = None  # seconds that its start and its warm-up kept the loop waiting
        self._steady: float | None = None  # when the latest batch after it came

    def batch(self, now: float, waited: float) -> float | None:
        """Count a batch; return the seconds since the one before, None while warming up."""
        if not self.batches:
            waited = now - self.begun  # the iterator was built in it
        self.batches, self.waited, self.last = self.batches + 1, self.waited + waited, now
        before, warm = self._steady, self.batches >= self.drop
        if warm:
            self._steady = now
        if warm and before is None:
            self.startup = self.waited
        return None if before is None else now - before

    def is_whole(self, *, exhausted: bool) -> bool:
        """Whether it was an epoch from begin to end, as the script has them."""
        return self.batches > 0 and (self.how is Begun.SCRIPTS or (self.how is Begun.OURS and exhausted))

    def leave_out(self, seconds: float) -> None:
        """Let a pause since the latest batch be no part of it."""
        self.begun += seconds
        self.last += seconds
        if self._steady is not None:
            self._steady += seconds


class Window:
    """What a setting gives. `workers` tells the pids of its worker processes."""

    def __init__(self, setting: Setting, *, own_cgroup: bool, workers: Callable[[], Iterable[int]]) -> None:
        self.setting = setting
        self._own, self._workers = own_cgroup, workers
        self._pass: TimedPass | None = None
        self._from: Counters | None = None
        self._steady, self._whole = Totals(), Totals()  # after warm-ups; of whole passes, with what their start costs
        self._startup: float | None = None
        self._steps: deque[float] = deque(maxlen=USUAL)
        self._peak, self._busy = shm_used(), []  # type: ignore[var-annotated]
        self._sampled = 0.0

    def begin_pass(self, drop: int, how: Begun, begun: float | None = None) -> None:
        """Begin an iterator's life, now or when it was built."""
        self._pass = TimedPass(drop, how, time.monotonic() if begun is None else begun)

    def end_pass(self, *, exhausted: bool) -> None:
        """End it: with the last batch, or before."""
        ended, self._pass = self._pass, None
        if ended is None or not ended.is_whole(exhausted=exhausted):
            return
        end = time.monotonic()
        if not exhausted:  # its last step is not known
            end = ended.last + (median(self._steps) if self._steps else 0.0)
        self._whole.add(ended.batches, end - ended.begun, ended.waited)
        if self._from is None:
            self._count()

    def asks(self) -> None:
        """The loop asks for a batch. After an epoch's end it begins the next one with workers that have stayed."""
        if self._pass is None:
            self.begin_pass(1, Begun.SCRIPTS)

    def batch(self, waited: float, busy: Callable[[], int | None] | None) -> None:
        """Count a batch that the loop waited for so long."""
        now = time.monotonic()
        self.asks()
        own = self._pass
        assert own is not None  # noqa: S101 - for the type checker
        if own.batches:
            self._follow_step(own, now - waited - own.last)
        step = own.batch(now, waited)
        if step is not None:
            self._steady.add(1, step, waited)
        elif own.startup is not None:
            self._warm(own)
        if now - self._sampled >= SAMPLE_SECONDS:
            self._sample(now, busy)

    def _warm(self, own: TimedPass) -> None:
        if self._startup is None and own.how is not Begun.MIDDLE:
            self._startup = own.startup
        if self._from is None:
            self._count()

    def _follow_step(self, own: TimedPass, seconds: float) -> None:
        """Take what the loop did between two batches; what is no step by far is left out."""
        usual = median(self._steps) if len(self._steps) >= 3 else seconds
        if seconds > max(PAUSE * usual, PAUSE_SECONDS):
            own.leave_out(seconds - usual)
        else:
            self._steps.append(seconds)

    def _count(self) -> None:
        synchronize()
        self._from = counters(self._workers(), own_cgroup=self._own)

    def _sample(self, now: float, busy: Callable[[], int | None] | None) -> None:
        self._sampled = now
        self._peak = max(self._peak, shm_used())
        percent = busy() if busy is not None and self._from is not None else None
        if percent is not None:
            self._busy.append(percent)

    @property
    def timed_batches(self) -> int:
        """Batches since the warm-up, or of whole passes where these are too short for one."""
        return self._told.batches

    @property
    def _told(self) -> Totals:
        enough = self._steady.batches >= MIN_BATCHES
        return self._steady if enough or self._steady.batches >= self._whole.batches else self._whole

    def over(self, seconds: float) -> bool:
        """Whether enough was timed: so many seconds, and some batches."""
        if max(self._steady.batches, self._whole.batches) >= MIN_BATCHES:
            return max(self._steady.seconds, self._whole.seconds) >= seconds
        return self._told.seconds >= seconds * MAX_TIMES_LONGER and self._told.batches > 0

    def facts(self, length: int | None, *, persistent: bool) -> dict[str, Any]:
        """Return what was measured; `length` is the epoch's batches, None where nobody knows."""
        synchronize()
        told = self._told
        return {
            "rate": self._epoch_rate(told, length, persistent=persistent),
            "steady_rate": told.rate,
            "batches": told.batches,
            "seconds": told.seconds,
            "wait_share": told.waited / told.seconds if told.seconds else 0.0,
            "startup_seconds": self._startup,
            "shm_peak": self._peak,
            "gpu_busy": sum(self._busy) / len(self._busy) if self._busy else None,
            **self._used(),
        }

    def _epoch_rate(self, told: Totals, length: int | None, *, persistent: bool) -> float:
        """Return batches per second over an epoch: workers that stay start once, others at each epoch's beginning."""
        if persistent and self.setting.num_workers:
            return told.rate
        if self._whole.seconds:
            return self._whole.rate
        if not length or not told.batches or self._startup is None:
            return told.rate
        lost = max(0.0, self._startup - (self.setting.num_workers + 1) * told.waited / told.batches)
        return length / (lost + length / told.rate)

    def _used(self) -> dict[str, Any]:
        if self._from is None:
            return {}
        first, last = self._from, counters(self._workers(), own_cgroup=self._own)
        seconds = max(last.clock - first.clock, 1e-9)

        def grown(name: str) -> float | None:
            before, after = getattr(first, name), getattr(last, name)
            return None if before is None or after is None else max(0, after - before)

        periods, throttled = grown("periods"), grown("throttled")
        read, stood = grown("read"), grown("throttled_seconds")
        return {
            "cpus_queued": max(0.0, last.queued - first.queued) / seconds,
            "cpus_used": (last.cpu - first.cpu) / seconds,
            "worker_cpus": (last.worker_cpu - first.worker_cpu) / seconds,
            "throttled_share": throttled / periods if periods and throttled is not None else None,
            "throttled_seconds": stood,
            "read_per_second": None if read is None else read / seconds,
        }
