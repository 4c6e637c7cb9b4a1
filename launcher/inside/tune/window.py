"""The timing of one setting: batches, waits and counters between the end of its warm-up and now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from launcher.inside.tune.gpu import synchronize
from launcher.inside.tune.meter import Counters, counters, shm_used
from launcher.inside.tune.task import Setting

FEWEST_BATCHES = 8
LONGEST = 3  # times the seconds of a setting that a few slow batches may take
SAMPLE_SECONDS = 0.1


class Pass:
    """One iterator's life. The first `drop` batches are warm-up: workers start, and the queue fills or empties."""

    def __init__(self, drop: int, *, whole: bool) -> None:
        self.begun = time.monotonic()
        self.whole = whole
        self.drop = drop
        self.batches = 0
        self.startup = 0.0  # seconds until the warm-up was over
        self._steady: float | None = None  # when it was

    def batch(self, now: float) -> float | None:
        """Count a batch; return the seconds since the one before, None while warming up."""
        self.batches += 1
        before, warm = self._steady, self.batches >= self.drop
        if warm:
            self._steady = now
        if warm and before is None:
            self.startup = now - self.begun
        return None if before is None else now - before


class Window:
    """What a setting gives. `workers` tells the pids of its worker processes."""

    def __init__(self, setting: Setting, *, own_cgroup: bool, workers: Callable[[], Iterable[int]]) -> None:
        self.setting = setting
        self._own, self._workers = own_cgroup, workers
        self._pass: Pass | None = None
        self._from: Counters | None = None
        self._seconds = self._waited = 0.0
        self._batches = 0
        self._passes = [0, 0.0]  # batches and seconds of whole ones
        self._startup: float | None = None
        self._peak, self._busy = shm_used(), []  # type: ignore[var-annotated]
        self._sampled = 0.0

    def begin_pass(self, drop: int, *, whole: bool = True) -> None:
        """Begin an iterator's life; it counts as a whole epoch if it also ends, unless `whole` is False."""
        self._pass = Pass(drop, whole=whole)

    def end_pass(self, *, exhausted: bool) -> None:
        """End it: with the last batch, or before."""
        ended, self._pass = self._pass, None
        if ended is not None and ended.whole and exhausted and ended.batches:
            self._passes[0] += ended.batches
            self._passes[1] += time.monotonic() - ended.begun

    def batch(self, waited: float, busy: Callable[[], int | None] | None) -> None:
        """Count a batch that the loop waited for so long."""
        now = time.monotonic()
        if self._pass is None:
            self.begin_pass(1, whole=False)
        assert self._pass is not None  # noqa: S101 - for the type checker
        step = self._pass.batch(now)
        if self._startup is None and self._pass.startup:
            self._startup = self._pass.startup
        if step is not None:
            self._batches += 1
            self._seconds += step
            self._waited += waited
        elif self._from is None and self._pass.startup:
            synchronize()
            self._from = counters(self._workers(), own_cgroup=self._own)
        if now - self._sampled >= SAMPLE_SECONDS:
            self._sample(now, busy)

    def _sample(self, now: float, busy: Callable[[], int | None] | None) -> None:
        self._sampled = now
        self._peak = max(self._peak, shm_used())
        percent = busy() if busy is not None and self._from is not None else None
        if percent is not None:
            self._busy.append(percent)

    @property
    def timed_batches(self) -> int:
        """Batches since the warm-up."""
        return self._batches

    def over(self, seconds: float) -> bool:
        """Whether enough was timed: so many seconds, and some batches."""
        if self._batches >= FEWEST_BATCHES:
            return self._seconds >= seconds
        return self._seconds >= seconds * LONGEST and self._batches > 0

    def facts(self, length: int | None, *, persistent: bool) -> dict[str, Any]:
        """Return what was measured; `length` is the epoch's batches, None where nobody knows."""
        synchronize()
        rate = self._batches / self._seconds if self._seconds else 0.0
        return {
            "rate": self._epoch_rate(rate, length, persistent=persistent),
            "steady_rate": rate,
            "batches": self._batches,
            "seconds": self._seconds,
            "wait_share": self._waited / self._seconds if self._seconds else 0.0,
            "startup_seconds": self._startup,
            "shm_peak": self._peak,
            "gpu_busy": sum(self._busy) / len(self._busy) if self._busy else None,
            **self._used(),
        }

    def _epoch_rate(self, rate: float, length: int | None, *, persistent: bool) -> float:
        """Return batches per second over an epoch: workers that stay start once, others at each epoch's beginning."""
        if persistent and self.setting.num_workers:
            return rate
        if self._passes[1]:
            return self._passes[0] / self._passes[1]
        if not length or not rate or self._startup is None:
            return rate
        lost = max(0.0, self._startup - (self.setting.num_workers + 1) / rate)
        return length / (lost + length / rate)

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
