"""The line that sizes an unsized run: one number from the highest peak, which the job can be started with."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.plan_label import Planned, planned_of
from trainlaunch.plan.shared_memory import PAGE, semaphores
from trainlaunch.run.base.backend import Peak, ShmReading
from trainlaunch.run.base.shm_reading import highest, measured_line, peak_of
from trainlaunch.units import GIB, MIB

from tests.jobs import plan_with

FOUR = Planned(processes=2, queued_batches=4, unsized=True)


def line(planned: Planned, peak: Peak | None, *, size: int = 8 * GIB, exit_code: int | None = 0) -> str:
    """Return what is said of a run that ended well in a /dev/shm of 8 GiB."""
    return measured_line(planned, peak, size=size, exit_code=exit_code)


def pasted(text: str) -> dict[str, Any]:
    """Return the data_loader block of a text as YAML reads it."""
    found: dict[str, Any] = yaml.safe_load(text[text.index("data_loader:\n") :])["data_loader"]
    return found


def plan_of(**data_loader: object) -> LaunchPlan:
    """Return the plan of a job with memory enough for everything."""
    with tempfile.TemporaryDirectory() as folder:
        resources = {"cpus": 64, "memory": "64Ti"}
        return plan_with(Path(folder), data_loader=data_loader, resources=resources)


@pytest.mark.parametrize("held", [120 * 1024, 5 * MIB, 221 * MIB, 3 * GIB + 17])
def test_the_pasted_plan_covers_the_peak(held: int) -> None:
    """It needs at least the peak and at most 2.5 times as much."""
    unsized = plan_of(num_workers=2, batch_size=8)
    sized = plan_of(num_workers=2, batch_size=8, **pasted(line(planned_of(unsized), Peak(held, 2))))
    assert held <= sized.shm.need <= 2.5 * held + 32 * PAGE


@settings(max_examples=80, deadline=None)
@given(
    planned=st.integers(1, 8),
    ran=st.integers(1, 16),
    prefetch=st.integers(1, 4),
    batch=st.integers(16, 20_000),
    besides=st.sampled_from((0, 1, 2)),
)
def test_the_pasted_plan_holds_three_epochs_of_the_workers_that_ran(
    planned: int, ran: int, prefetch: int, batch: int, besides: int
) -> None:
    """Whether fewer or more ran than planned: their full queue, what the loop holds and what later epochs inherit."""
    unsized = plan_of(num_workers=planned, prefetch_factor=prefetch, batch_size=8)
    unit = batch * PAGE
    held = (ran * prefetch + besides) * unit + semaphores(ran) * PAGE
    told = pasted(line(planned_of(unsized), Peak(held, ran), size=64 << 40))
    sized = plan_of(**{"num_workers": planned, "prefetch_factor": prefetch, "batch_size": 8, **told})
    assert sized.shm.worst_case >= (ran * prefetch + 3) * unit + 2 * semaphores(ran) * PAGE


def test_fewer_workers_than_planned_queue_fewer_batches() -> None:
    """The preflight lowers an automatic number, and a script may have one of its own: their batches are larger."""
    sixteen = Planned(processes=16, queued_batches=32, unsized=True)
    assert pasted(line(sixteen, Peak(160 * MIB, 2)))["batch_bytes"]["size"] == "40Mi"
    assert pasted(line(sixteen, Peak(160 * MIB, None)))["batch_bytes"]["size"] == "5Mi"


def test_workers_where_none_were_planned_are_pasted_too() -> None:
    """A batch size alone would size nothing for a plan without workers."""
    told = pasted(line(Planned(processes=0, queued_batches=0, unsized=True), Peak(40 * MIB, 4)))
    assert told == {"num_workers": 4, "batch_bytes": {"size": "5Mi", "tensors": 1}}


def test_a_run_that_filled_its_shm_measured_nothing() -> None:
    """What didn't fit isn't in the peak: after a failure the size is too small, and the text says so."""
    told = line(FOUR, Peak(63 * MIB, 2), size=64 * MIB, exit_code=1)
    assert told == (
        "the run filled its /dev/shm: 63 MiB of 64 MiB, so its peak is not known yet: run it with a larger shm_size"
    )
    assert "batch_bytes" in line(FOUR, Peak(63 * MIB, 2), size=64 * MIB)  # it trained to its end
    assert "batch_bytes" in line(FOUR, Peak(40 * MIB, 2), size=64 * MIB, exit_code=1)
    assert "batch_bytes" in line(FOUR, Peak(63 * MIB, 2), size=0, exit_code=1)  # the host's is larger


def test_nothing_is_pasted_from_semaphores() -> None:
    """numpy batches go through a pipe; while a run starts it is too early to say so."""
    few = Peak((semaphores(2) + 2) * PAGE, 2)
    assert "too little for a batch: set data_loader.collate: none" in line(FOUR, few)
    assert line(FOUR, Peak(PAGE)).endswith(
        "no DataLoader worker was seen, as in a run of seconds; if the script has none, set data_loader: none"
    )
    assert not line(FOUR._replace(processes=0), Peak(PAGE))  # as planned
    assert line(FOUR, few, exit_code=None) == ""


@pytest.mark.parametrize("planned", [Planned(), FOUR._replace(unsized=False)])
def test_a_sized_run_is_told_nothing(planned: Planned) -> None:
    """It states what its batches take."""
    assert line(planned, Peak(40 * MIB, 2)) == ""
    assert line(FOUR, None) == ""


def test_a_batch_is_at_least_the_largest_storage() -> None:
    """A loop that waits for each batch never fills the queue, and the batch that it has is still seen."""
    told = line(FOUR, Peak(6 * MIB, 2, 4 * MIB))
    assert pasted(told)["batch_bytes"]["size"] == "4Mi"
    assert "its largest storage was 4.0 MiB" in told
    assert pasted(line(FOUR, Peak(24 * MIB, 2, 4 * MIB)))["batch_bytes"]["size"] == "6Mi"


def test_the_highest_peak_counts_whoever_saw_it() -> None:
    """With the workers of its own moment; of equal peaks that of fewest workers gives the larger batch."""
    peaks = [None, Peak(5, 9), Peak(7, None), Peak(7, 4), Peak(7, 2), Peak(6, 1)]
    assert highest(peaks) == Peak(7, 2)
    assert highest([*peaks, Peak(1, 1, 5)]) == Peak(7, 2, 5)
    assert highest([None]) is None


def test_a_reading_without_workers_knows_none_of_the_peak() -> None:
    """Between two epochs no worker runs, and the health check still tells the peak of before."""
    assert peak_of(ShmReading(10, 30, 100, 0)) == Peak(30, None)
    assert peak_of(ShmReading(30, 30, 100, 4)) == Peak(30, 4)
    assert peak_of(ShmReading(10, 30, 100, 1, 4)) == Peak(30, 4)
    assert peak_of(None) is None
