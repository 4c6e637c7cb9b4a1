"""What the wrapper proves of the folder that the next attempt goes on from, under each shell."""

from __future__ import annotations

import pytest
from trainlaunch.exit_codes import EXIT_FILES_WRONG, EXIT_TRY_ELSEWHERE
from trainlaunch.plan.launch_plan import LaunchPlan

from tests.preflight.containers import SHM, Case, RunsCases
from tests.preflight.plans import plan, prints
from tests.preflight.test_shm_in_containers import passed, stopped

pytestmark = pytest.mark.docker
FOLDER = "/saved/a run's"


def saving(room: str | None = None) -> LaunchPlan:
    """Return the plan of a job that saves below a mount."""
    volume = {"type": "volume", "source": "saved", "target": "/saved"}
    return plan(
        mounts=[volume],
        checkpoint_dir=FOLDER,
        checkpoint_bytes=room,
        command=prints("TRAINLAUNCH_CHECKPOINT_DIR"),
    )


def test_a_checkpoint_folder_is_made_and_told(run_cases: RunsCases) -> None:
    """A first attempt finds none; a name may have any letters."""
    cases = [Case(saving(room), setup="rm -rf /saved/*") for room in (None, "20Mi")]
    for ended in run_cases(cases, SHM, "--tmpfs=/saved:size=24m"):
        passed(ended, f"{FOLDER}\n")


def test_a_folder_that_can_not_be_written_is_a_fault_of_the_files(run_cases: RunsCases) -> None:
    """Said before the first epoch, and who can't."""
    cases = [Case(saving(), user=1000, setup="chmod 755 /saved")]
    (ended,) = run_cases(cases, SHM, "--tmpfs=/saved:size=24m")
    stopped(ended, EXIT_FILES_WRONG, "uid 1000 can't make files in checkpoint_dir /saved/a run's")
    (ended,) = run_cases([Case(saving())], SHM, "--tmpfs=/saved:ro")
    stopped(ended, EXIT_FILES_WRONG, "can't make files in checkpoint_dir")


def test_room_that_is_taken_is_the_machines_and_a_small_disk_the_files(run_cases: RunsCases) -> None:
    """75 may do elsewhere, 78 never."""
    full = "rm -rf /saved/*; head -c 8M /dev/zero >/saved/other"
    cases = [Case(saving("20Mi"), setup=full), Case(saving("25Mi"), setup="rm -rf /saved/*")]
    taken, small = run_cases(cases, SHM, "--tmpfs=/saved:size=24m")
    stopped(taken, EXIT_TRY_ELSEWHERE, "has 16 MiB free of the 20 asked")
    stopped(small, EXIT_FILES_WRONG, "of the 25 asked")


def test_an_attempt_on_a_cluster_knows_its_number(run_cases: RunsCases) -> None:
    """The controller counts restarts from 0; what is no number of its tells nothing."""
    again = plan(
        target="kubernetes",
        mounts=[{"type": "pvc", "source": "saved", "target": "/saved"}],
        checkpoint_dir=FOLDER,
        restart={"max_attempts": 3},
        kubernetes={"kind": "jobset"},
        resources={"cpus": 1, "memory": "1Gi"},
        command=prints("TRAINLAUNCH_ATTEMPT"),
    )
    told = {"0": "1", "1": "2", "11": "12", "": "", "08": "", "1; exit 3": ""}
    cases = [Case(again, env={"TRAINLAUNCH_RESTARTS": each}) for each in told]
    ended = run_cases([*cases, Case(again)], SHM, "--tmpfs=/saved:size=24m")
    for each, number in zip(ended, (*told.values(), ""), strict=True):
        passed(each, f"{number}\n")
