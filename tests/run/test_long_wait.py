"""A wait for one batch that is far longer than those before it, as a stuck worker makes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.run.base.wait_reading import ASIDE, DataWait, LoaderWait
from trainlaunch.run.base.watch import SILENT_SECONDS, LongWait, planned_shm

from tests.jobs import plan_with


def loop(batches: int, waited: float, phase: str = "training", first: float = 0.0) -> DataWait:
    """Return what is read of the only loop of a job."""
    return DataWait((LoaderWait(0, 7, phase, "train.py:31", batches, waited, first, 0.0, 0.0),))


@pytest.fixture
def watched(tmp_path: Path) -> LongWait:
    """Return what is told each reading."""
    return LongWait(planned_shm(plan_with(tmp_path)))


def test_it_is_said_once(watched: LongWait) -> None:
    """With what was usual, and who looks further."""
    readings = (loop(50, 1.0 + seconds) for seconds in (0.0, SILENT_SECONDS - 1, SILENT_SECONDS + 1, 90.0))
    said = [each for each in map(watched.take, readings) if each is not None]
    assert len(said) == 1
    assert said[0].startswith(
        "the job has waited 61 s for a batch at train.py:31, where 0.02 s are usual; `trainlaunch "
    )


@pytest.mark.parametrize(
    "readings",
    [
        (loop(0, 0.0), loop(0, 90.0)),  # its first batch
        (loop(50, 500.0), loop(50, 590.0)),  # 10 s are usual
        (loop(1000, 105.0, first=100.0), loop(1000, 175.0, first=100.0)),  # its workers take long to start
        (loop(50, 1.0), loop(51, 41.0), loop(52, 81.0), loop(53, 121.0)),  # several batches
        (loop(50, 1.0, ASIDE), loop(50, 91.0, ASIDE)),  # a thread that may wait for somebody who takes none
    ],
)
def test_what_only_looks_so_is_not_said(watched: LongWait, readings: tuple[DataWait, ...]) -> None:
    """A loop's first batch starts its workers; a slow loader is none that hangs."""
    assert [watched.take(each) for each in readings] == [None] * len(readings)
