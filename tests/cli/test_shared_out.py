"""Work on many files is shared out among processes, in order."""

from __future__ import annotations

import os

import pytest
from trainlaunch.committed.render_jobs import parallel_map


def process_of(number: int) -> tuple[int, int]:
    """Return a number and who was asked."""
    return number, os.getpid()


def test_the_first_is_done_before_the_processes_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it loads, they have in memory already; each number is asked for once, and the answers keep their order."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 1})
    made = list(parallel_map(process_of, range(40), per_process=10, chunk=4))
    assert [number for number, _ in made] == list(range(40))
    assert made[0][1] == os.getpid()
    assert os.getpid() not in {process for _, process in made[1:]}


def test_few_stay_in_this_process() -> None:
    """Starting others would take longer."""
    assert {process for _, process in parallel_map(process_of, range(19), per_process=10, chunk=4)} == {os.getpid()}
