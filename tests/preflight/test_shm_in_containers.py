"""What the wrapper makes of the /dev/shm that a real container got, under each shell."""

from __future__ import annotations

import pytest
from trainlaunch.container.preflight import STOP_MARKER
from trainlaunch.exit_codes import EXIT_FILES_WRONG, EXIT_TRY_ELSEWHERE
from trainlaunch.units import MIB

from tests.conftest import Runs
from tests.preflight.containers import SHM, Case, Ended, RunsCases
from tests.preflight.plans import automatic, plan, prints, tuned

pytestmark = pytest.mark.docker

STATED = plan(command=["echo", "trained"])


def stopped(ended: Ended, code: int, *words: str) -> None:
    """Assert that the wrapper stopped with this code, saying these words, and no job ran."""
    assert (ended.code, ended.out) == (code, ""), ended
    last = ended.err.splitlines()[-1]
    assert last.startswith(f"{STOP_MARKER} ({code}): ")
    for word in words:
        assert word in last


def passed(ended: Ended, out: str = "trained\n") -> None:
    """Assert that the job ran and printed this."""
    assert (ended.code, ended.out) == (0, out), ended
    assert "trainlaunch: preflight passed: " in ended.err


def both_users() -> list[Case]:
    """The same plan as root and as a user that no image knows."""
    return [Case(STATED), Case(STATED, user=1000)]


@pytest.mark.parametrize(
    "flags",
    [
        (SHM,),
        ("--read-only", "--tmpfs=/tmp", SHM),
        ("--cap-drop=ALL", "--security-opt=no-new-privileges", "--cap-add=SETUID", "--cap-add=SETGID", SHM),
        ("--ipc=host",),
        # The last of two mounts on /dev/shm is the one that programs see.
        ("--tmpfs=/dev/shm:size=1m", "--mount=type=tmpfs,dst=/dev/shm,tmpfs-size=256m"),
        ("--mount=type=bind,src=/var/tmp,dst=/dev/shm", "--tmpfs=/dev/shm:size=256m"),
    ],
    ids=["own", "read-only-root", "no-capabilities", "ipc-host", "two-tmpfs", "tmpfs-over-disk"],
)
def test_job_runs_where_shm_holds_its_need(run_cases: RunsCases, flags: tuple[str, ...]) -> None:
    """As root and as any uid."""
    for ended in run_cases(both_users(), *flags):
        passed(ended)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--ipc=none",), ("missing", "set shm_size to 2048Mi")),
        (("--tmpfs=/dev/shm:ro,size=256m",), ("can't make files in /dev/shm", "writable")),
        (("--tmpfs=/dev/shm:size=256m,nr_inodes=1",), ("can't make files in /dev/shm",)),
        (("--mount=type=bind,src=/var/tmp,dst=/dev/shm",), ("not tmpfs", "set shm_size to 2048Mi")),
        (("--shm-size=18m",), ("has 18 MiB, the job needs 19 MiB", "set shm_size to 2048Mi")),
        (("--shm-size=4096",), ("has 0 MiB, the job needs 19 MiB",)),
    ],
    ids=["missing", "read-only", "no-inode", "disk", "a-little-small", "one-page"],
)
def test_wrong_shm_is_a_fault_of_the_files(
    run_cases: RunsCases, flags: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """78: the same files would be wrong on every machine."""
    for ended in run_cases(both_users(), *flags):
        stopped(ended, EXIT_FILES_WRONG, *words)


def test_exactly_the_need_passes_and_one_page_less_stops(run_cases: RunsCases) -> None:
    """The law is tight to the page, and so is its check."""
    need = STATED.shm.need
    assert need % 4096 == 0
    passed(run_cases([Case(STATED)], f"--shm-size={need}")[0])
    stopped(run_cases([Case(STATED)], f"--shm-size={need - 4096}")[0], EXIT_FILES_WRONG)


def test_private_shm_of_another_uid_is_not_writable(run_cases: RunsCases) -> None:
    """Mode 700 gives torch a misleading `No such file or directory`."""
    root, user = run_cases(both_users(), "--tmpfs=/dev/shm:size=256m,mode=700")
    passed(root)
    stopped(user, EXIT_FILES_WRONG, "uid 1000 can't make files in /dev/shm", "mode 1777")


def test_size_zero_is_unlimited(run_cases: RunsCases) -> None:
    """A tmpfs with size=0 reports no blocks at all; the job is told the planned size."""
    told = plan(command=prints("TRAINLAUNCH_SHM_BYTES"))
    ended = run_cases([Case(told)], "--tmpfs=/dev/shm:size=0")[0]
    passed(ended, f"{told.shm.size.value}\n")
    assert "/dev/shm unlimited" in ended.err


def test_job_is_told_the_size_that_it_got(run_cases: RunsCases) -> None:
    """It may be larger or smaller than the planned one."""
    told = plan(command=prints("TRAINLAUNCH_SHM_BYTES"))
    passed(run_cases([Case(told)], "--shm-size=300m")[0], f"{300 * MIB}\n")


def test_used_shm_is_a_fault_of_the_machine(run_cases: RunsCases) -> None:
    """75 for stated workers; automatic ones are lowered as long as one fits."""
    on_gpu = automatic(resources={"gpus": 1, "cpus": 8}, command=prints("TRAINLAUNCH_NUM_WORKERS"))
    assert on_gpu.num_workers.value == 8
    mebibytes = (10, 64 - 18, 64 - 13, 64 - 12)
    fill = "touch /dev/nvidia0; head -c {}M /dev/zero >/dev/shm/other"
    cases = [Case(each, setup=fill.format(size), allowed_cpus="0-7") for size in mebibytes for each in (STATED, on_gpu)]
    ended = run_cases(cases, "--shm-size=64m")
    passed(ended[0])
    passed(ended[1], "7\n")
    for each in (ended[2], ended[4], ended[6]):
        stopped(each, EXIT_TRY_ELSEWHERE, "of 64 MiB free", "needs 19 MiB")
    passed(ended[3], "1\n")
    passed(ended[5], "1\n")
    stopped(ended[7], EXIT_TRY_ELSEWHERE, "has 12 of 64 MiB free", "needs 13 MiB")


def test_leftovers_of_a_dead_attempt_are_deleted_only_on_demand(run_cases: RunsCases) -> None:
    """A container's restart in a pod keeps them (rt-shm-survives-container-restart); sharing shows others'."""
    left = (
        "head -c 30M /dev/zero >/dev/shm/torch_1_2_0; touch /dev/shm/nccl-x '/dev/shm/psm_a b' /dev/shm/sem.mp-1;"
        "touch /dev/shm/kept /dev/shm/.trainlaunch-peak"
    )
    listing = plan(command=["ls", "-A", "/dev/shm"])
    seen, cleaned = run_cases(
        [Case(listing, setup=left), Case(listing, setup=left, env={"TRAINLAUNCH_CLEAN_SHM": "1"})],
        "--shm-size=64m",
    )
    passed(seen, ".trainlaunch-peak\nkept\nnccl-x\npsm_a b\nsem.mp-1\ntorch_1_2_0\n")
    passed(cleaned, ".trainlaunch-peak\nkept\n")
    for each in (seen, cleaned):
        assert "warning: /dev/shm has 4 files of other runs, 30720 KiB in all" in each.err


def test_automatic_workers_are_lowered_to_what_every_epoch_needs(run_cases: RunsCases) -> None:
    """In turn the loader with the largest batch decides, together their sum; what is checked is still one epoch."""
    loaders = {"a": {}, "b": {"batch_size": 32}, "c": {"num_workers": 1, "batch_size": 16}}
    found = []
    for run in ("in_turn", "together"):
        job = automatic(
            loader={"loaders_run": run, "loaders": loaders},
            resources={"gpus": 1, "cpus": 8},
            command=prints("TRAINLAUNCH_NUM_WORKERS"),
        )
        line = max(job.shm.every_epoch)
        fitting = (40 * MIB - line.constant) // line.per_worker
        case = Case(job, setup="touch /dev/nvidia0; head -c 88M /dev/zero >/dev/shm/other", allowed_cpus="0-7")
        ended = run_cases([case], "--shm-size=128m")[0]
        passed(ended, f"{fitting}\n")
        need = max(each.per_worker * fitting + each.constant for each in job.shm.first_epoch)
        assert f"(needs {-(-need // MIB)} MiB)" in ended.err
        found.append(fitting)
    # in turn (2W + 2)·3 + 3 + 1.5 + 0.75 MiB, together (2W + 2)·4.5 + 4.5 + 3.75 MiB, and pages
    assert found == [4, 2]


def test_leftovers_are_deleted_before_free_space_is_compared(run_cases: RunsCases) -> None:
    """Else a retry would be refused for the space that it is about to free."""
    left = "head -c 50M /dev/zero >/dev/shm/torch_1_2_0"
    kept, cleaned = run_cases(
        [Case(STATED, setup=left), Case(STATED, setup=left, env={"TRAINLAUNCH_CLEAN_SHM": "1"})],
        "--shm-size=64m",
    )
    stopped(kept, EXIT_TRY_ELSEWHERE, "has 14 of 64 MiB free")
    passed(cleaned)


def test_thousands_of_leftovers_are_deleted(run_cases: RunsCases) -> None:
    """More names than one command line holds."""
    left = "cd /dev/shm; seq -f torch_%060.0f 40000 | xargs touch"
    ended = run_cases([Case(STATED, setup=left, env={"TRAINLAUNCH_CLEAN_SHM": "1"})], SHM)[0]
    passed(ended)
    assert "40000 files" in ended.err


def test_wrapper_leaves_nothing_behind(run_cases: RunsCases) -> None:
    """Neither in /dev/shm nor in the temporary directory."""
    ended = run_cases([Case(plan(command=["ls", "-A", "/dev/shm", "/tmp"]))], SHM)[0]
    passed(ended, "/dev/shm:\n\n/tmp:\n")


def test_shm_of_another_container_counts_with_what_is_in_it(
    docker_run: Runs, run_cases: RunsCases, base_image: str, own_label: str
) -> None:
    """`--ipc=container:X` gives X's size, whatever --shm-size says."""
    started = docker_run(
        "--detach",
        "--ipc=shareable",
        "--shm-size=24m",
        base_image,
        "sh",
        "-c",
        "head -c 8M /dev/zero >/dev/shm/x; sleep 600",
    )
    donor = started.stdout.strip()
    cases = [Case(STATED, setup="until [ -e /dev/shm/x ]; do sleep 0.1; done")]
    ended = run_cases(cases, f"--ipc=container:{donor}", SHM)[0]
    stopped(ended, EXIT_TRY_ELSEWHERE, "has 16 of 24 MiB free")


def test_tuned_workers_are_lowered_only_with_fewer_cpus_than_they_were_measured_with(run_cases: RunsCases) -> None:
    """Three on two CPUs are what tune found there, where the rule says none; on one CPU it counts again.

    Whether the job asks for those CPUs or for none.
    """
    command = prints("TRAINLAUNCH_NUM_WORKERS")
    asking, other = (tuned(automatic(resources=each, command=command), 3) for each in ({"cpus": 2}, {}))
    assert asking.num_workers.value == other.num_workers.value == 3
    full = "head -c 234M /dev/zero >/dev/shm/other"  # 22 MiB are left: 6 MiB a worker and 6 MiB besides, twice held
    asked = ((asking, "0-1", ":", 3), (asking, "0", ":", 0), (other, "0-1", ":", 3), (other, "0", ":", 0))
    asked += ((asking, "0-1", full, 2),)
    cases = [Case(job, allowed_cpus=cpus, setup=setup) for job, cpus, setup, _ in asked]
    for ended, (*_, workers) in zip(run_cases(cases, SHM), asked, strict=True):
        passed(ended, f"{workers}\n")
