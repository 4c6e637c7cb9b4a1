"""What is wrong with a run that goes on, judged from a look at its processes; what only looks so is left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trainlaunch.diagnose import explain_live
from trainlaunch.diagnose.base.case import Diagnosis
from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.run.base.live_snapshot import read_snapshot

from tests.run.live.looks import FORK, GET, GPU, IN_SAMPLE, LOADER, LOOP, NO_WORK, SHM, V2, WAITS, Proc, text, worker

FULL_SHM = "shm tmpfs 4096 16384 100\n"
HALF_FULL = "shm tmpfs 4096 16384 6000\n"
COLLECTIVE = (
    ("wait", "/usr/lib/python3/dist-packages/torch/distributed/x.py", 9),
    ("all_reduce", "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", 2800),
    ("wrapper", "/usr/lib/python3/dist-packages/torch/distributed/c10d_logger.py", 80),
    ("<module>", "/w/train.py", 60),
)
ELSEWHERE = (("save", "/w/train.py", 70), ("<module>", "/w/train.py", 90))
LOCK = {"kernel": "futex_do_wait", "ran": 70_000.0}
ASLEEP = {"kernel": "hrtimer_nanosleep", "ran": 70_000.0}
MAIN = Proc(7, stack=WAITS)


def found(*processes: Proc, more: str = V2 + SHM, spy: bool = True, log: str = "") -> list[Diagnosis]:
    """Return what is wrong."""
    look = read_snapshot(text(*processes, more=more, spy=spy))
    assert look is not None
    return list(explain_live(replace(Evidence(None, log), look=look)))


def rank(number: int, **more: object) -> Proc:
    """Return one of two ranks that torchrun started."""
    env = (f"RANK={number}", f"LOCAL_RANK={number}", "LOCAL_WORLD_SIZE=2", "WORLD_SIZE=2")
    return Proc(20 + number, 7, env=env, **more)  # type: ignore[arg-type]


def test_a_worker_that_is_stuck_is_told_with_its_line_and_its_seconds() -> None:
    """Which of them, where, since when."""
    (only,) = found(MAIN, worker(8, stack=NO_WORK), worker(9, stack=IN_SAMPLE, **ASLEEP))
    assert only.symptom == "slow-loading"
    assert only.sentence.startswith("worker 1 has been in `__getitem__` at /w/data.py:41 for 70 s")
    assert only.confidence == "likely"


def test_without_stacks_the_kernels_word_makes_it_possible() -> None:
    """It sleeps, and the main process does nothing."""
    (only,) = found(Proc(7), worker(8), worker(9, **ASLEEP), spy=False)
    assert (only.symptom, only.confidence) == ("slow-loading", "possible")
    assert "hrtimer_nanosleep for 70 s" in only.sentence


def test_workers_that_do_all_they_can_are_the_limit() -> None:
    """With the number to try: what would keep the GPU busy and has a CPU each."""
    workers = [worker(8 + each, state="R", ticks=100, stack=IN_SAMPLE) for each in range(4)]
    (only,) = found(MAIN, *workers, more=V2.replace("200000 100000", "max 100000") + SHM + GPU)
    assert only.sentence == "workers at 100 % CPU, queue empty, GPU idle 71 %: loading is the limit"
    assert (
        only.fix
        == "try more: let it start 14 workers where it sets num_workers (an option, a variable, or the DataLoader call)"
    )
    (narrow,) = found(MAIN, *workers, more=V2.replace("200000 100000", "1200000 100000") + SHM + GPU)
    assert (
        narrow.fix
        == "try more: let it start 12 workers where it sets num_workers (an option, a variable, or the DataLoader call)"
    )
    (full,) = found(MAIN, *workers, more=V2.replace("200000 100000", "400000 100000") + SHM + GPU)
    assert full.fix.startswith("raise resources.cpus")


def test_workers_that_get_no_cpu_are_not_helped_by_more_of_them() -> None:
    """The run queue says so."""
    workers = [worker(8 + each, state="R", ticks=20, starved=750, stack=IN_SAMPLE) for each in range(2)]
    (only,) = found(MAIN, *workers)
    assert "they wait for a CPU 75 % of the time" in only.sentence
    assert "more workers would not help" in only.fix


def test_a_lock_that_was_held_across_the_fork_is_told() -> None:
    """By where it stands, and the kernel's futex; it is told once."""
    (only,) = found(MAIN, worker(8, stack=IN_SAMPLE, **LOCK), worker(9, stack=IN_SAMPLE, **LOCK))
    assert only.symptom == "fork-deadlock"
    assert "in `__getitem__` at /w/data.py:41 for 70 s" in only.sentence
    (unseen,) = found(Proc(7), worker(8, **LOCK), worker(9, **LOCK), spy=False)
    assert (unseen.symptom, unseen.confidence) == ("fork-deadlock", "possible")


def test_a_worker_that_never_came_out_of_fork_is_one() -> None:
    """It has no name of a worker and no loop yet; its parent stands there too, for a moment."""
    start = (FORK, ("_get_iterator", LOADER, 438), ("<module>", "/w/train.py", 31))
    (only,) = found(MAIN, Proc(8, 7, stack=start, **LOCK))
    assert only.symptom == "fork-deadlock"
    assert "worker 0 has waited for a lock in `fork` for 70 s" in only.sentence
    look = read_snapshot(text(MAIN, Proc(8, 7, stack=start, kernel="futex_do_wait")))
    assert look is not None
    assert look.workers == ()


def test_a_lock_of_a_worker_that_was_not_forked_is_another_thing() -> None:
    """Spawned workers copy no lock."""
    spawned = [each for each in IN_SAMPLE if "popen_fork" not in each[1]]
    (only,) = found(MAIN, worker(8, stack=spawned, **LOCK))
    assert only.symptom == "slow-loading"


def test_a_lost_batch_on_a_full_shm_is_told() -> None:
    """Its log may be gone, or on another page."""
    for shm in (FULL_SHM, HALF_FULL):
        (only,) = found(MAIN, worker(8, stack=NO_WORK), worker(9, stack=NO_WORK), more=V2 + shm)
        assert only.symptom == "shm-exhausted-hang"


def test_a_full_shm_of_a_job_that_works_is_only_possible() -> None:
    """An idle queue may be full."""
    (only,) = found(Proc(7, state="R", ticks=90), worker(8, ticks=30), more=V2 + FULL_SHM, spy=False)
    assert (only.symptom, only.confidence) == ("shm-exhausted", "possible")


def test_a_rank_that_waits_for_one_that_has_ended_is_told() -> None:
    """By torchrun's own variables."""
    (only,) = found(Proc(7, name="torchrun"), rank(0, stack=COLLECTIVE, **LOCK))
    assert only.symptom == "dist-timeout-secondary"
    assert only.sentence == (
        "rank 0 waits in all_reduce at /w/train.py:60, and local rank 1 of 2 does not run any more"
    )


def test_a_rank_that_waits_for_one_that_stands_elsewhere_is_told() -> None:
    """With where that one is."""
    (only,) = found(rank(0, stack=COLLECTIVE, **LOCK), rank(1, stack=ELSEWHERE, **ASLEEP))
    assert "for rank 1, which has been in `save` at /w/train.py:70 for 70 s" in only.sentence


def test_a_limit_that_is_nearly_reached_is_told() -> None:
    """Open files; memory without what can be given back."""
    near = text(Proc(7)).replace("fds 7 14", "fds 7 1000")
    look = read_snapshot(near)
    assert look is not None
    (only,) = explain_live(replace(Evidence(None), look=look))
    assert (only.symptom, only.saw) == ("fd-limit", "process 7 has 1000 of 1024 files open")
    (memory,) = found(Proc(7), more=V2.replace("anon 1073741824", "anon 3700000000") + SHM)
    assert (memory.symptom, memory.confidence) == ("oom-killed", "possible")


@pytest.mark.parametrize(
    "processes",
    [
        pytest.param([MAIN, worker(8, stack=NO_WORK, ran=10.0), worker(9, stack=NO_WORK)], id="between two batches"),
        pytest.param([Proc(7, stack=ELSEWHERE, ran=70_000.0), worker(8, stack=NO_WORK, ran=4000.0)], id="a long save"),
        pytest.param([Proc(7, stack=ELSEWHERE), worker(8, stack=IN_SAMPLE, **ASLEEP)], id="nobody waits for it"),
        pytest.param([MAIN, worker(8, stack=NO_WORK), worker(9, stack=IN_SAMPLE, ran=900.0)], id="a slow sample"),
        pytest.param([Proc(7, state="R", ticks=100), worker(8, ticks=90), worker(9, ticks=90)], id="all are busy"),
        pytest.param([rank(0, stack=COLLECTIVE, ran=200.0), rank(1, stack=COLLECTIVE, ran=300.0)], id="ranks in step"),
        pytest.param([rank(0, stack=ELSEWHERE, ran=70_000.0)], id="one rank saves and the other has ended well"),
        pytest.param([Proc(1, 0, "docker-init"), Proc(7, name="sleep", ran=9e5)], id="sleep"),
        pytest.param([MAIN, worker(8, state="Z"), worker(9, stack=(GET, LOOP))], id="workers that end"),
    ],
)
def test_a_run_that_is_well_is_left_alone(processes: list[Proc]) -> None:
    """A false alarm is worse than silence."""
    assert found(*processes) == []


def test_a_busy_gpu_is_not_starved_of_data() -> None:
    """Whatever the workers do."""
    busy = [worker(8 + each, state="R", ticks=100, stack=IN_SAMPLE) for each in range(4)]
    gpu = GPU.replace(", 20,", ", 97,").replace(", 38,", ", 99,")
    assert found(MAIN, *busy, more=V2 + SHM + gpu) == []
