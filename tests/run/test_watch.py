"""What is noticed while a job runs: a full /dev/shm, other workers than planned, and the size of an unsized job."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.plan_label import Planned
from trainlaunch.run.base.backend import Chunk, ShmReading
from trainlaunch.run.base.followed_log import Log
from trainlaunch.run.base.run_evidence import TAIL_BYTES
from trainlaunch.run.base.shm_reading import PAGE, read_from_health, read_from_proc
from trainlaunch.run.base.watch import (
    COUNTS_BEFORE_FEWER_IS_SAID,
    SILENT_SECONDS,
    ShmWatch,
    planned_shm,
)
from trainlaunch.units import GIB, MIB

from tests.jobs import plan_with
from tests.run.scripted import BLANK, Scripted

IMAGES = {"batch_size": 64, "sample": [{"shape": [3, 224, 224], "dtype": "float32"}]}


@pytest.fixture
def plan(tmp_path: Path) -> LaunchPlan:
    """Return the plan of two workers, whose batch is 36.75 MiB."""
    return plan_with(tmp_path, data_loader={**IMAGES, "num_workers": 2}, resources={"cpus": 4, "memory": "8Gi"})


@pytest.fixture
def watch(plan: LaunchPlan) -> tuple[ShmWatch, list[str]]:
    """Return a watch that is fed by hand, and what it says."""
    said: list[str] = []
    return ShmWatch(Scripted([]), planned_shm(plan), Log(lambda log: "", said.append), said.append), said


@pytest.mark.parametrize(("target", "way"), [("docker", "add `--set shm_size="), ("local", "; end what else uses it")])
def test_what_a_full_shm_of_a_command_of_run_asks_for_is_no_field(plan: LaunchPlan, target: str, way: str) -> None:
    """It has options, and no job file."""
    said: list[str] = []
    planned = planned_shm(plan._replace(by_run=True, target=target))
    ShmWatch(Scripted([]), planned, Log(lambda log: "", said.append), said.append).take(reading(2 * GIB))
    assert way in said[0]
    assert "data_loader" not in said[0]


def reading(used: int, size: int = 2 * GIB, workers: int | None = 2) -> ShmReading:
    """Return a reading whose peak is what is used."""
    return ShmReading(used=used, peak=used, size=size, workers=workers)


def test_the_peak_is_the_largest_reading(watch: tuple[ShmWatch, list[str]]) -> None:
    """Also one that the health check saw between two samples."""
    watcher, said = watch
    for used in (MIB, 5 * MIB, 2 * MIB):
        watcher.take(reading(used))
    assert watcher.peak == 5 * MIB
    watcher.end("shm used=1 peak=7340032 size=99999999 workers=2/2")
    assert watcher.peak == 7 * MIB
    assert said == []


ILL = "unhealthy: rank 0 has waited 32 s for one batch, 30 s are allowed (stall_after)"


@pytest.mark.parametrize(
    ("health", "output", "stops"),
    [
        ("starting", ILL, True),
        ("healthy", ILL, True),
        ("starting", "unhealthy: /dev/shm is gone, so no batch can reach the training process", False),
        ("unhealthy", "Health check exceeded timeout (10s)", False),
        ("healthy", "longest_wait=40 shm used=1", False),
    ],
)
def test_a_stall_counts_at_the_first_check_that_says_it(
    plan: LaunchPlan, health: str, output: str, stops: bool
) -> None:
    """Also before an engine counts failures, and before there were as many as its retries; no other failure does."""
    against: list[str] = []
    watcher = ShmWatch(Scripted([]), planned_shm(plan), Log(lambda log: "", print), print, unhealthy=against.append)
    watcher.take_health(replace(BLANK, health=health, health_output=output))
    assert against == ([ILL.removeprefix("unhealthy: ")] if stops else [])


def test_full_means_no_room_for_the_next_storage(watch: tuple[ShmWatch, list[str]], plan: LaunchPlan) -> None:
    """One page more room than the largest storage is not full; said once, with both numbers."""
    watcher, said = watch
    largest = plan.shm.loaders[0].largest
    watcher.take(reading(2 * GIB - largest))
    assert said == []
    watcher.take(reading(2 * GIB - largest + PAGE))
    watcher.take(reading(2 * GIB))
    assert len(said) == 1
    seen = r"/dev/shm was seen full at \d\d:\d\d:\d\d: 2\.0 GiB of 2\.0 GiB used, one-epoch peak .* that finds no room"
    assert re.match(seen, said[0]), "what was seen, and what may follow; not what has not happened"


def test_a_full_shm_with_a_silent_log_is_stuck(
    watch: tuple[ShmWatch, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a minute of both, once, with since when and what to type; a log that goes on, or room again, is no hang."""
    watcher, said = watch
    now = 1000.0
    monkeypatch.setattr("trainlaunch.run.base.watch.time.monotonic", lambda: now)
    full = reading(2 * GIB)
    watcher.log.take(Chunk(False, b"epoch 1\n"))
    watcher.take(full)
    now += SILENT_SECONDS - 1
    watcher.take(full)
    watcher.log.take(Chunk(False, b"epoch 2\n"))
    now += 2
    watcher.take(full)
    watcher.take(reading(MIB))
    now += SILENT_SECONDS
    watcher.take(full)
    assert len(said) == 1
    now += SILENT_SECONDS
    watcher.take(full)
    watcher.take(full)
    assert len(said) == 2
    stuck = r"the job is stuck, .* full since \d\d:\d\d:\d\d \(2.0 GiB of 2.0 GiB .* nothing was printed since \d\d:"
    assert re.match(stuck, said[1])
    assert "; end the run, then set shm_size to 4Gi and resources.memory to at least 10Gi" in said[1]


def test_an_unhealthy_run_is_said_once(watch: tuple[ShmWatch, list[str]]) -> None:
    """In the words of the health check; starting and healthy are no remark, nor is a container that is gone."""
    watcher, said = watch
    sick = replace(BLANK, health="unhealthy", health_output="unhealthy: /dev/shm is gone")
    for now in (None, replace(BLANK, health="starting"), replace(BLANK, health="healthy"), sick, sick):
        watcher.take_health(now)
    assert said == ["the health check says: unhealthy: /dev/shm is gone"]


def test_an_unlimited_shm_is_never_full(watch: tuple[ShmWatch, list[str]]) -> None:
    """tmpfs with size=0 reports 0 blocks."""
    watcher, said = watch
    watcher.take(reading(5 * GIB, size=0))
    assert said == []


def test_more_workers_than_planned_are_said_once(watch: tuple[ShmWatch, list[str]]) -> None:
    """With both numbers, once the count stands; as many as planned, or none yet, are no remark."""
    watcher, said = watch
    for workers in (0, 2, None, 3, 4):
        watcher.take(reading(0, workers=workers))
    assert said == []
    for workers in (5, None, 5, 5):
        watcher.take(reading(0, workers=workers))
    assert len(said) == 1
    assert said[0].startswith("found 5 DataLoader workers, planned 2")


def test_fewer_workers_are_said_at_the_end_only_if_it_ran_long_enough(watch: tuple[ShmWatch, list[str]]) -> None:
    """A job that ends in its first seconds has shown nothing."""
    watcher, _ = watch
    for _ in range(COUNTS_BEFORE_FEWER_IS_SAID - 1):
        watcher.take(reading(0, workers=0))
    assert watcher.fewer_workers() == ""
    watcher.take(reading(0, workers=1))
    assert watcher.fewer_workers().startswith("saw at most 1 DataLoader worker, planned 2")
    watcher.take(reading(0, workers=2))
    assert watcher.fewer_workers() == ""


@pytest.mark.parametrize(
    ("inject", "way"),
    [("env", "let it read TRAINLAUNCH_NUM_WORKERS"), ("num_workers", "was left alone, and why")],
)
def test_fewer_workers_have_the_way_to_more(tmp_path: Path, inject: str, way: str) -> None:
    """What is injected needs nothing of the script, and has said itself which loader it left alone."""
    plan = plan_with(tmp_path, data_loader={**IMAGES, "num_workers": 2, "inject": inject})
    watcher = ShmWatch(Scripted([]), planned_shm(plan), Log(lambda log: "", print), print)
    for _ in range(COUNTS_BEFORE_FEWER_IS_SAID):
        watcher.take(reading(0, workers=0))
    assert way in watcher.fewer_workers()


def test_workers_that_the_preflight_lowered_are_the_plan(tmp_path: Path) -> None:
    """An auto num_workers counts as what the preflight settled on; a stated one stays."""
    loaders = {"train": {}, "val": {"num_workers": 3}}
    plan = plan_with(tmp_path, data_loader={**IMAGES, "loaders": loaders}, resources={"cpus": 8, "memory": "16Gi"})
    log = Log(lambda text: "", print)
    assert log.num_workers is None
    assert planned_shm(plan).processes(log.num_workers) == plan.num_workers.value + 3
    log.take(Chunk(True, b"trainlaunch: preflight passed: /dev/shm 2.0 GiB, 4 CPUs, num_workers 1\n"))
    log.take(Chunk(False, b"x" * TAIL_BYTES * 2))
    assert planned_shm(plan).processes(log.num_workers) == 1 + 3


def test_the_log_keeps_its_last_part(plan: LaunchPlan) -> None:
    """Enough for a diagnosis, and no more of a job that prints for weeks."""
    log = Log(lambda text: "", print)
    for number in range(3000):
        log.take(Chunk(False, f"line {number} {'x' * 60}\n".encode()))
    assert log.text.endswith(f"line 2999 {'x' * 60}\n")
    assert len(log.text) == TAIL_BYTES


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("shm used=10 peak=30 size=100 workers=4/4", ShmReading(10, 30, 100, 4)),
        ("shm used=50 peak=30 size=100 workers=0/4 ok\n", ShmReading(50, 50, 100, 0)),
        ("shm used=0 peak=30 size=0 peak_workers=4 largest=9", ShmReading(0, 30, 0, None, 4, 9)),
        ("shm used=10 size=100", ShmReading(10, 10, 100, None)),
        ("shm used=unknown peak=unknown size=unlimited workers=3/4", ShmReading(0, 0, 0, 3)),
        ("/dev/shm is gone", None),
        ("", None),
    ],
)
def test_the_health_line_is_read(output: str, expected: ShmReading | None) -> None:
    """What the health command prints, or nothing where it found a fault."""
    assert read_from_health(output) == expected


def fake_proc(folder: Path, container: str) -> Path:
    """Make a /proc whose process 7 is in `container` and sees two workers."""
    home = folder / "7"
    (home / "root/dev/shm").mkdir(parents=True)
    (home / "cgroup").write_text(f"4:memory:/docker/{container}\n")
    for pid, name in {"1": "tini", "8": "pt_data_worker", "9": "pt_data_worker", "10": "python"}.items():
        (home / "root/proc" / pid).mkdir(parents=True)
        (home / "root/proc" / pid / "comm").write_text(name + "\n")
    (home / "root/proc/meminfo").write_text("")
    (home / "root/proc/10/maps").write_text(
        "7f00-9f00 rw-s 00000000 00:5a 31    /dev/shm/torch_1_2_3 (deleted)\n"
        "9f00-af00 rw-s 00002000 00:5a 31    /dev/shm/torch_1_2_3 (deleted)\n"
        "af00-bf00 rw-s 00000000 00:5a 32    /dev/shm/torch_1_2_4 (deleted)\n"
        "1000-9000 rw-s 00000000 00:5a 33    /dev/shm/nccl-x\n7000-7f00 r-xp 00000000 08:01 9    /usr/bin/python3\n"
    )
    return folder


def test_proc_is_read_only_where_the_cgroup_names_the_container(tmp_path: Path) -> None:
    """On a remote engine the same pid is somebody else's process."""
    proc = fake_proc(tmp_path, "abc")
    found = read_from_proc(replace(BLANK, id="abc", pid=7), proc)
    assert found is not None
    assert found.workers == 2
    assert read_from_proc(replace(BLANK, id="other", pid=7), proc) is None
    assert read_from_proc(replace(BLANK, id="abc", pid=8), proc) is None
    assert read_from_proc(replace(BLANK, id="abc", pid=0), proc) is None


def test_the_largest_storage_of_an_unsized_run_is_looked_for(tmp_path: Path) -> None:
    """In what training processes have mapped: torch's own files, all parts of one together. A sized run needs none."""
    proc = fake_proc(tmp_path, "abc")
    unsized, sized = (replace(BLANK, id="abc", pid=7, planned=Planned(unsized=each)) for each in (True, False))
    found = [read_from_proc(each, proc) for each in (unsized, sized)]
    assert [each.largest for each in found if each is not None] == [0x3000, 0]


def test_a_hang_in_the_log_is_said_at_once() -> None:
    """stderr only, and once; a terminal's one stream is stdout."""
    said: list[str] = []
    judge: Callable[[str], str] = lambda log: "hung" if "queues.py" in log else ""  # noqa: E731
    log = Log(judge, said.append)
    log.take(Chunk(True, b"trainlaunch: preflight passed\n"))
    log.take(Chunk(False, b"queues.py Error\n"))
    assert said == []
    Log(judge, said.append).take(Chunk(False, b"queues.py Error\r\n"))
    assert said.pop()
    log.take(Chunk(True, b'  File "queues.py", line 1, in _feed\nRuntime'))
    log.take(Chunk(True, b"Error: unable\n"))
    log.take(Chunk(True, b"Error: unable\n"))
    assert len(said) == 1
    assert re.fullmatch(r"since \d\d:\d\d:\d\d hung", said[0])


@pytest.mark.parametrize(("stated", "said"), [(2, False), (1, True)])
def test_a_script_that_could_have_run_all_of_them_is_left_alone(tmp_path: Path, stated: int, said: bool) -> None:
    """Its constant is what was planned: its loops were too short to be seen; a smaller one is named."""
    (tmp_path / "train.py").write_text(
        f"from torch.utils.data import DataLoader\nDataLoader([], 2, num_workers={stated})\n"
    )
    fields = {"working_dir": "/w", "mounts": [{"type": "bind", "source": ".", "target": "/w"}]}
    plan = plan_with(tmp_path, data_loader={**IMAGES, "num_workers": 2}, **fields)
    watcher = ShmWatch(Scripted([]), planned_shm(plan), Log(lambda log: "", print), print)
    for _ in range(COUNTS_BEFORE_FEWER_IS_SAID):
        watcher.take(reading(0, workers=1))
    assert ("train.py:2 sets 1" in watcher.fewer_workers()) is said
