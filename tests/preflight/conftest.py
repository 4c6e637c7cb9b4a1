"""Runs cases of the wrapper: many in one long-lived container where their settings are those of many."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Runs
from tests.engine.case_server import IN_CONTAINER, CaseServers
from tests.preflight.containers import DRIVER, SHELLS, SHM, Case, Ended, RunsCases, StartsPrograms

SECONDS = 180.0
# The flags that several tests have. A container with others is for one call alone.
KEPT = (
    (SHM,),
    ("--shm-size=64m",),
    (SHM, "--tmpfs=/saved:size=24m"),
)
MOUNTS = (f"--volume={DRIVER}:/server/driver.py:ro", f"--volume={IN_CONTAINER}/pristine.py:/server/pristine.py:ro")


@pytest.fixture(
    params=[each if each == "dash" else pytest.param(each, marks=pytest.mark.long) for each in SHELLS], ids=str
)
def shell(request: pytest.FixtureRequest) -> str:
    """Return the name of a shell: dash in the default, each of SHELLS for tests marked EVERY_SHELL."""
    return str(request.param)


@pytest.fixture
def start_programs(docker_run: Runs, case_servers: CaseServers, base_image: str) -> StartsPrograms:
    """Start what the driver takes, in a container with these flags, of the tests' own image unless `image` says so."""

    def start(programs: list[dict[str, object]], *flags: str, image: str = "") -> list[Ended]:
        driver = (*MOUNTS, *flags, image or base_image, "python3", "/server/driver.py")
        if flags in KEPT and not image:
            ended = case_servers.ask(driver, programs, SECONDS)["ended"]
        else:
            done = docker_run("--interactive", *driver, "once", input=json.dumps(programs))
            assert done.returncode == 0, done.stderr
            ended = json.loads(done.stdout)
        return [Ended(each["code"], each["out"], each["err"]) for each in ended]

    return start


@pytest.fixture
def run_cases(start_programs: StartsPrograms, shell: str) -> RunsCases:
    """Run cases under `shell`, one after the other."""

    def run(cases: list[Case], *flags: str, image: str = "") -> list[Ended]:
        return start_programs([each.started_by(shell) for each in cases], *flags, image=image)

    return run
