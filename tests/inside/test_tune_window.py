"""What a setting's timing makes of epochs that are short, broken off, slow to start, or have a pause, by a clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from trainlaunch.inside.tune import window
from trainlaunch.inside.tune.meter import Counters
from trainlaunch.inside.tune.task import Setting
from trainlaunch.inside.tune.window import Begun, Window


class Loop:
    """A script's loop by a clock that only it moves: each batch is waited for, then a step is made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
        self.now = 100.0
        clock = type("Clock", (), {"monotonic": lambda: self.now})
        monkeypatch.setattr(window, "time", clock)
        monkeypatch.setattr(window, "synchronize", lambda: None)
        monkeypatch.setattr(window, "shm_used", lambda: 0)
        monkeypatch.setattr(
            window, "counters", lambda *_, **__: Counters(self.now, 0, self.now, 0, None, None, None, 0)
        )
        self.workers = workers
        self.window = Window(Setting(workers), own_cgroup=True, workers=tuple)

    def begins(self, how: Begun = Begun.OURS, building: float = 0.0) -> None:
        """An iterator is built, which takes so long."""
        self.window.end_pass(exhausted=False)
        self.window.begin_pass(self.workers + 1, how)
        self.now += building

    def runs(self, batches: int, wait: float, step: float = 0.0) -> None:
        """So many batches are used."""
        for _ in range(batches):
            self.window.asks()
            self.now += wait
            self.window.batch(wait, None)
            self.now += step

    def epochs(self, one: Callable[[], None]) -> int:
        """Return how many epochs are timed until there is enough for two seconds, 200 at most."""
        for count in range(200):
            if self.window.over(2.0):
                return count
            one()
        return 200

    def rate(self, length: int | None = None, *, persistent: bool = False) -> float:
        """Return the batches per second that are reported."""
        return float(self.window.facts(length, persistent=persistent)["rate"])


@pytest.mark.parametrize("length", [1, 3, 6])
def test_epochs_with_fewer_batches_than_a_warm_up_are_timed_whole(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    """Six workers drop seven batches, so that nothing else would ever be timed."""
    loop = Loop(monkeypatch, 6)

    def epoch() -> None:
        loop.begins(building=0.2)
        loop.runs(length, 0.1)
        loop.window.end_pass(exhausted=True)

    assert loop.epochs(epoch) < 15
    facts = loop.window.facts(length, persistent=False)
    assert facts["rate"] == pytest.approx(length / (0.2 + 0.1 * length))
    assert facts["wait_share"] == pytest.approx(1.0)
    assert facts["cpus_used"] is not None


def test_short_epochs_of_workers_that_stay_are_timed_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is built for them: the next question begins an epoch."""
    loop = Loop(monkeypatch, 6)
    loop.begins(building=5.0)

    def epoch() -> None:
        loop.runs(1, 0.1, 0.1)
        loop.window.end_pass(exhausted=True)

    assert loop.epochs(epoch) < 20
    assert loop.rate(1, persistent=True) == pytest.approx(1.0, rel=0.1)  # their start counts once


def test_a_loop_that_breaks_off_pays_for_each_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty of a million batches are an epoch; what the script does between them is none of it."""
    loop = Loop(monkeypatch, 4)

    def epoch() -> None:
        loop.begins(Begun.SCRIPTS, building=1.0)
        loop.runs(20, 0.0, 0.1)
        loop.now += 30.0  # an evaluation

    loop.epochs(epoch)
    loop.begins(Begun.SCRIPTS)
    assert loop.rate(1_000_000) == pytest.approx(20 / 3.0, rel=0.01)


def test_an_iterator_of_ours_that_the_script_breaks_off_is_no_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """It began somewhere within the script's."""
    loop = Loop(monkeypatch, 1)
    loop.begins(Begun.OURS, building=1.0)
    loop.runs(4, 0.0, 0.1)
    loop.begins(Begun.SCRIPTS, building=1.0)
    loop.runs(40, 0.0, 0.1)
    assert loop.rate(None) == pytest.approx(10.0, rel=0.01)


def test_a_pause_within_an_epoch_is_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An evaluation every few batches, a checkpoint; a slow batch is waited for and counts."""
    loop = Loop(monkeypatch, 2)
    loop.begins()
    for _ in range(3):
        loop.runs(10, 0.1, 0.1)
        loop.now += 8.0
    assert loop.rate() == pytest.approx(5.0, rel=0.01)
    loop.runs(1, 8.0, 0.1)
    assert loop.rate() < 3.0


def test_the_first_steps_of_a_script_are_no_start_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is compiled in its first step would make each of eight workers look slow to start."""
    loop = Loop(monkeypatch, 8)
    loop.begins(Begun.FIRST, building=0.5)
    loop.runs(1, 0.0, 30.0)
    loop.runs(60, 0.0, 0.1)
    assert loop.rate(100) == pytest.approx(100 / 10.5, rel=0.02)


def test_the_middle_of_an_epoch_tells_nothing_of_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue's batches are dropped there, which costs the script nothing."""
    loop = Loop(monkeypatch, 8)
    loop.window.begin_pass(17, Begun.MIDDLE)
    loop.runs(60, 0.1)
    assert loop.rate(70) == pytest.approx(10.0)


def test_few_slow_batches_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times the seconds."""
    loop = Loop(monkeypatch, 0)
    loop.begins()
    loop.runs(2, 4.0)
    assert not loop.window.over(2.0)
    loop.runs(1, 4.0)
    assert loop.window.over(2.0)
    assert loop.rate() == pytest.approx(0.25)
