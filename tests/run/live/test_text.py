"""What a look's text says: both cgroup versions, files in /dev/shm by owner, GPUs, stacks; nothing of a damaged one."""

from __future__ import annotations

import pytest
from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot, Memory
from trainlaunch.run.base.live_snapshot import read_snapshot
from trainlaunch.units import GIB, MIB

from tests.run.live.looks import GPU, IN_SAMPLE, SHM, V1, V2, WAITS, Proc, text, worker

ODD = ("at b", "at b x - - 7 (a) S", "map 7 odd", "file odd", "cg memory.max", "gpu b ,,,,", "env 7 RANK=x")


def look(*processes: Proc, more: str = V2 + SHM, spy: bool = True) -> ContainerSnapshot:
    """Return what a text says."""
    found = read_snapshot(text(*processes, more=more, spy=spy))
    assert found is not None
    return found


def test_cgroup_v2_gives_the_memory_split_the_quota_and_how_often_it_was_used_up() -> None:
    """Cached files don't count what is in /dev/shm a second time."""
    found = look(Proc(7))
    assert found.memory == Memory(4 * GIB, 2 * GIB, GIB, 512 * MIB, 256 * MIB)
    assert (found.quota, found.throttled, found.pids) == (2.0, (9, 10), (9, 100))


def test_cgroup_v1_gives_the_same_and_no_limit_where_there_is_none() -> None:
    """Its hierarchical numbers, not those of one level."""
    found = look(Proc(7), more=V1 + SHM)
    assert found.memory == Memory(None, 2 * GIB, GIB, 512 * MIB, 256 * MIB)
    assert (found.quota, found.throttled, found.pids, found.cpus) == (None, None, (9, None), 16)


def test_a_process_has_its_share_of_a_cpu_and_how_long_it_slept_or_was_kept_waiting() -> None:
    """By its ticks, by the scheduler's clock, by what it waited in the run queue."""
    main, busy = look(Proc(7, ran=70_000), worker(8, state="R", ticks=40, starved=550)).processes
    assert main.cpu == 0
    assert main.asleep == pytest.approx(70)
    assert busy.cpu == pytest.approx(0.4)
    assert busy.starved == pytest.approx(0.55)
    assert busy.asleep is None
    assert (main.open_files, main.most_files) == (14, 1024)


def test_a_container_counts_pids_as_its_job_does() -> None:
    """The innermost of NSpid: what logs and file names have."""
    shown = text(Proc(4007), worker(4008)._replace(parent=4007)).replace("NSpid:\t4007", "NSpid:\t4007\t7")
    found = read_snapshot(shown.replace("NSpid:\t4008", "NSpid:\t4008\t8"))
    assert found is not None
    assert [(each.pid, each.parent) for each in found.processes] == [(7, 0), (8, 7)]


def test_a_process_that_ended_during_the_look_is_none_of_it() -> None:
    """A health check's, say: its stat was read, its status no more, so nobody knows its number in the container."""
    shown = text(Proc(7), Proc(4008)).replace("status 4008 NSpid:", "status 4008 gone:")
    found = read_snapshot(shown)
    assert found is not None
    assert [each.pid for each in found.processes] == [7]


def test_a_name_with_spaces_and_parentheses_is_one_name() -> None:
    """A process may call itself so."""
    (found,) = look(Proc(7, name="a) S 1 (b")).processes
    assert (found.name, found.state) == ("a) S 1 (b", "S")


def test_files_in_shm_are_told_by_owner() -> None:
    """A batch on its way has no name any more: only a mapping shows it, once, however many map it."""
    more = (
        V2
        + SHM
        + "map 7 7f00000-7f40000 rw-s 00000000 00:5b 12 /dev/shm/torch_8_1_0 (deleted)\n"
        + "map 8 7f00000-7f40000 rw-s 00000000 00:5b 12 /dev/shm/torch_8_1_0 (deleted)\n"
        + "map 7 7f50000-7f51000 rw-s 00000000 00:5b 13 /dev/shm/sem.abc (deleted)\n"
        + "file total 12\nfile -rw------- 1 0 0 9637888 Nov 28 12:00 nccl-ab12\n"
        + "file -rw-r--r-- 1 0 0 100 Nov 28 12:00 a name with spaces\n"
    )
    found = look(Proc(7), worker(8), more=more).shm
    assert found is not None
    assert (found.size, found.used) == (64 * MIB, 32 * MIB)
    held = {each.kind: (each.size, each.pids) for each in found.held}
    assert held == {"NCCL": (9637888, ()), "torch": (0x40000, (8,)), "semaphores": (0x1000, (7,)), "others": (100, ())}


def test_gpus_are_as_busy_as_both_moments_say() -> None:
    """NVML's numbers, through nvidia-smi; what it can't say is left out."""
    (found,) = look(Proc(7), more=V2 + SHM + GPU + "gpu b GPU-2, 1, [N/A], 1, 2\n").gpus
    assert (found.number, found.busy, found.used, found.total) == ("0", 29.0, 8 * GIB, 80 * GIB)


def test_stacks_are_the_main_threads_with_short_names() -> None:
    """Newer py-spy says in which class a function is; where there is none the reason is kept."""
    found = look(Proc(7, stack=WAITS), worker(8, stack=IN_SAMPLE))
    assert [each.name for each in found.processes[1].stack[:3]] == ["__getitem__", "fetch", "_worker_loop"]
    assert found.stacks == ""
    assert look(Proc(7), spy=False).stacks == "py-spy is not installed"
    refused = "spy 7\nError: Permission Denied: Try running again with elevated permissions\nspied 7\n"
    assert look(Proc(7), more=V2 + refused).stacks.startswith("py-spy: Error: Permission Denied")


@pytest.mark.parametrize(
    "damaged",
    ["", "nonsense", "end\n", "moment a 1 1\nend\n", text(Proc(7)).removesuffix("end\n")],
)
def test_a_text_that_is_not_whole_says_nothing(damaged: str) -> None:
    """No shell in the container, or it ended meanwhile."""
    assert read_snapshot(damaged) is None


@pytest.mark.parametrize("line", ODD)
def test_odd_lines_are_left_out(line: str) -> None:
    """Whatever a hostile job calls its files and processes."""
    assert len(look(Proc(7), more=f"{V2}{SHM}{line}\n").processes) == 1
