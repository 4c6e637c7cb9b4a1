"""Ranks of torchrun may save their work for as long as the container may run after SIGTERM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trainlaunch.container.container import container_of
from trainlaunch.run.local.process_spec import _environment

from tests.conftest import Runs
from tests.jobs import plan_with

VARIABLE = "PET_SHUTDOWN_TIMEOUT"
SAVES = """\
import signal, sys, time
def save(*_):
    time.sleep(float(sys.argv[1]))
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
open("/tmp/ready", "w").close()
time.sleep(300)
"""
# Told to stop once its rank has its handler.
STOPPED = """\
%s python -c "$1" "$2" &
until [ -e /tmp/ready ]; do sleep 0.1; done
kill -TERM $!
wait; wait
"""


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({"torchrun": {}}, "28"),
        ({"torchrun": {}, "stop_grace_period": "5m"}, "298"),
        ({"torchrun": {}, "stop_grace_period": "1s"}, "1"),
        ({"command": ["torchrun", "--nproc_per_node", "2", "train.py"], "stop_grace_period": "1m"}, "58"),
        ({"torchrun": {}, "env": {VARIABLE: "7"}}, "7"),
        ({"torchrun": {}, "env": {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "7"}}, None),
        ({"stop_grace_period": "5m"}, None),
        ({"command": ["accelerate", "launch", "--num_processes", "2", "train.py"]}, None),
    ],
)
def test_torchrun_waits_as_long_as_the_container(tmp_path: Path, fields: dict[str, Any], seconds: str | None) -> None:
    """Two seconds are left for torchrun itself; a number of the job's own wins."""
    assert dict(container_of(plan_with(tmp_path, **fields)).env).get(VARIABLE) == seconds


def test_a_process_of_this_host_gets_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the shell that starts it says another number."""
    plan = plan_with(tmp_path, "local", torchrun={}, stop_grace_period="1m")
    monkeypatch.delenv(VARIABLE, raising=False)
    assert _environment(plan, run_id="3f2a", attempt=1, folder=tmp_path, as_shell=False)[VARIABLE] == "58"
    monkeypatch.setenv(VARIABLE, "90")
    assert _environment(plan, run_id="3f2a", attempt=1, folder=tmp_path, as_shell=False)[VARIABLE] == "90"


@pytest.mark.parametrize(("grace", "shown"), [("5m", True), ("30s", False)])
def test_plan_says_what_an_older_torchrun_does(trainlaunch: Runs, tmp_path: Path, grace: str, shown: bool) -> None:
    """Only where it would end a save that the container still has time for."""
    plan_with(tmp_path, torchrun={}, stop_grace_period=grace)
    why = " ".join(trainlaunch("plan", str(tmp_path / "job.yaml"), "--why").stdout.split())
    assert ("torchrun before 2.13 kills them after 30 s" in why) is shown


def saved(docker_run: Runs, image: str, folder: Path, grace: str, seconds: int) -> bool:
    """Stop a real torchrun whose rank saves for so many seconds; return whether it came to its end."""
    plan = plan_with(folder, torchrun={}, stop_grace_period=grace, command=["python", "-c", SAVES])
    name, value = next(each for each in container_of(plan).env if each[0] == VARIABLE)
    torchrun = " ".join(plan.argv[: plan.argv.index("--no-python") + 1])
    argv = ("sh", "-c", STOPPED % torchrun, "sh", SAVES, str(seconds))
    done = docker_run(f"--env={name}={value}", image, *argv, timeout=600)
    assert done.returncode == 0, done.stderr
    return "saved" in done.stdout


@pytest.mark.docker
def test_torchrun_obeys_the_variable(docker_run: Runs, torch_image: str, tmp_path: Path) -> None:
    """By itself it would wait 30 s, in which this rank would have saved: a second is what it was told."""
    assert not saved(docker_run, torch_image, tmp_path, "1s", seconds=8)


@pytest.mark.docker
@pytest.mark.long
def test_a_checkpoint_of_45_seconds_is_saved(docker_run: Runs, torch_image: str, tmp_path: Path) -> None:
    """By itself torchrun would kill its rank after 30 s."""
    assert saved(docker_run, torch_image, tmp_path, "90s", seconds=45)
