"""What the wrapper gives to users that the image doesn't know, under each shell."""

from __future__ import annotations

import subprocess

import pytest

from tests.conftest import Runs
from tests.preflight.containers import SHM, Case, RunsCases, pid_1_arguments
from tests.preflight.plans import FOLDERS, HOME, NAMED, plan

pytestmark = pytest.mark.docker

SHOWN = plan(command=["env", "-0"])
CLEAN = f"rm -rf {HOME}"


def identity(case: Case, run_cases: RunsCases) -> dict[str, str]:
    """Return the variables of a name and home that the job got."""
    (ended,) = run_cases([case], SHM)
    assert ended.code == 0, ended
    return {key: value for key, value in ended.variables.items() if key in NAMED | FOLDERS}


def test_a_uid_without_a_name_gets_one_and_a_home(run_cases: RunsCases) -> None:
    """On a cluster as on an engine, below a folder that only this uid can read."""
    shown = Case(SHOWN, user=1042, env={"HOME": "/"}, setup=CLEAN)
    assert identity(shown, run_cases) == NAMED | FOLDERS
    mode = Case(plan(command=["stat", "-c", "%a %u", HOME]), user=1042, env={"HOME": "/"}, setup=CLEAN)
    assert [each.out for each in run_cases([mode], SHM)] == ["700 1042\n"]


def test_what_is_set_stays(run_cases: RunsCases) -> None:
    """A home that can be written is no reason for another, a stated one is the user's own affair, and so is a name."""
    mine = {"USER": "me", "LOGNAME": "us", "XDG_CACHE_HOME": "/c", "HOME": "/"}
    kept = identity(Case(SHOWN, user=1042, env=mine, setup=CLEAN), run_cases)
    assert (kept["USER"], kept["LOGNAME"], kept["XDG_CACHE_HOME"], kept["HOME"]) == ("me", "us", "/c", HOME)
    writable = Case(SHOWN, user=1042, env={"HOME": "/tmp"}, setup=CLEAN)
    named = NAMED | {"HOME": "/tmp"}
    assert identity(writable, run_cases) == named
    stated = Case(plan(command=["env", "-0"], env={"HOME": "/nowhere"}), user=1042, env={"HOME": "/nowhere"})
    assert identity(stated, run_cases) == named | {"HOME": "/nowhere"}
    assert identity(Case(SHOWN, user=0, env={"HOME": "/nowhere"}, setup=CLEAN), run_cases) == FOLDERS


@pytest.mark.parametrize(
    "planted",
    [f"mkdir {HOME}; chmod 777 {HOME}", f"mkdir /tmp/other; chown 1042 /tmp/other; ln -s /tmp/other {HOME}"],
    ids=["folder", "link"],
)
def test_a_planted_home_is_not_taken(run_cases: RunsCases, planted: str) -> None:
    """Caches hold code that is run: nobody else may have made their folder, where /tmp is shared."""
    case = Case(SHOWN, user=1042, env={"HOME": "/"}, setup=f"rm -rf {HOME} /tmp/other; {planted}")
    assert identity(case, run_cases)["HOME"] == "/"


def test_shm_is_no_home(run_cases: RunsCases) -> None:
    """Its room is planned for batches."""
    case = Case(SHOWN, user=1042, env={"HOME": "/", "TMPDIR": "/dev/shm"})
    assert identity(case, run_cases)["HOME"] == "/"


def test_an_images_own_user_has_a_name(docker_run: Runs, base_image: str) -> None:
    """A USER of the image counts as one that the job states: nobody sees it before the container runs."""
    shown = plan(command=["python3", "-c", "import getpass; print(getpass.getuser())"])
    flags, argv = pid_1_arguments(Case(shown), "dash")
    text = f"FROM {base_image}\nUSER 1042\n"
    built = subprocess.run(["docker", "build", "--quiet", "-"], input=text, capture_output=True, text=True, check=True)
    image = built.stdout.strip()
    try:
        done = docker_run(SHM, *flags, image, *argv)
        assert (done.returncode, done.stdout) == (0, "trainlaunch\n"), done.stderr
        assert "warning: can't write to" not in done.stderr, "the folder / of an image that names none is no finding"
    finally:
        subprocess.run(["docker", "rmi", "--no-prune", image], capture_output=True, check=False)
