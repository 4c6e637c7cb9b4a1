"""Results of a search as tests need them: timings over workers, with every kind of figure."""

from __future__ import annotations

from trainlaunch.inside.tune.task import Setting
from trainlaunch.measure.tune.limit import limit_of
from trainlaunch.measure.tune.result import Tuned
from trainlaunch.measure.tune.trial import Trial, TunedLoader
from trainlaunch.units import MIB

LOADER = TunedLoader(
    at="train.py:48",
    key="train.py:48 DataLoader Images 128 RandomSampler",
    kind="DataLoader",
    batch_size=128,
    setting=Setting(0, 2, True),
    changes_in_place=True,
    reason="",
    cuda=True,
    cpus=16.0,
)
RATES = {0: 2.2, 1: 2.1, 2: 4.1, 4: 8.1, 8: 16.7, 12: 21.0, 14: 22.3, 16: 21.2}


def trial(workers: int, rate: float, prefetch: int = 2, *, pinned: bool | None = True, **more: object) -> Trial:
    """Return a timing with figures that follow from the number of workers."""
    made = Trial(
        setting=Setting(workers, prefetch, pinned),
        rate=rate,
        wait_share=max(0.02, 0.95 - rate / 24),
        shm_peak=workers * prefetch * 74 * MIB,
        cpus_used=min(16.0, workers + 0.8),
        worker_cpus=min(15.0, float(workers)),
        throttled_share=0.0,
        read_per_second=30e6,
        gpu_busy=min(97.0, rate * 4),
        batches=80,
        seconds=6.0,
    )
    return made._replace(**more)  # type: ignore[arg-type]


def tuned(loader: TunedLoader = LOADER, **more: object) -> Tuned:
    """Return a search with four lines, a setting that failed, and the first one timed twice."""
    trials = (
        *(trial(workers, rate) for workers, rate in RATES.items()),
        trial(14, 22.9, 4),
        trial(14, 22.8, 8),
        trial(14, 19.0, 2, pinned=False),
        trial(24, 0.0, error="RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error"),
        trial(0, 2.25),
    )
    best = Setting(14, 4, True)
    confirmed = trial(14, 22.6, 4, fresh=True)
    made = Tuned(
        job="resnet50",
        target="docker",
        ranks=1,
        loader=loader,
        trials=trials,
        best=best,
        limit=limit_of(confirmed, loader, at_the_end=""),
        confirmed=confirmed,
        was=trial(0, 2.2, fresh=True),
        takes_it=True,
    )
    return made._replace(**more)  # type: ignore[arg-type]
