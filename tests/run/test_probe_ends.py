"""A probe's containers are gone whatever way it ends; the script needs no torch to report."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Runs
from tests.measure.spoken import a_probe, reporting
from tests.run.test_up import Start, ended, read_until

pytestmark = pytest.mark.docker
UNSIZED = {"shm_size": None, "data_loader": {}}


def left(trainlaunch: Runs, job_name: str) -> list[str]:
    """Return the runs that measure a job."""
    found = json.loads(trainlaunch("ps", "-o", "json").stdout)["runs"]
    return [each["name"] for each in found if each["job"].startswith(f"{job_name}-probe-")]


@pytest.mark.usefixtures("compose")
@pytest.mark.parametrize("target", ["docker", "compose"])
def test_a_probe_leaves_no_container(
    trainlaunch: Runs, make_job: Callable[..., Path], job_name: str, target: str
) -> None:
    """Its records are hidden in the engine's own stream; the memory limit is the job's."""
    job_file = make_job(command=["python3", "-c", reporting(*a_probe())], **UNSIZED)
    done = trainlaunch("probe", str(job_file), "--target", target, "--write", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["loaders"][0]["storages"] == [3 << 20, 512]
    assert "preflight passed: /dev/shm 255 MiB" in done.stderr
    assert "trained" in done.stderr
    assert "\x1e" not in done.stderr
    assert left(trainlaunch, job_name) == []


def test_a_probe_beside_the_job_leaves_it_alone(
    trainlaunch: Runs, make_job: Callable[..., Path], job_name: str
) -> None:
    """The job runs under its own name, and `down` of it finds it alone."""
    script = "import time\nif not __import__('os').environ.get('TRAINLAUNCH_PROBE'): time.sleep(100)\n"
    job_file = make_job(command=["python3", "-c", script + reporting(*a_probe())], **UNSIZED)
    assert trainlaunch("up", "--detach", str(job_file)).returncode == 0
    assert trainlaunch("probe", str(job_file)).returncode == 0
    found = json.loads(trainlaunch("ps", "-o", "json").stdout)["runs"]
    assert [each["exit_code"] for each in found if each["job"] == job_name] == [None]
    assert trainlaunch("down", str(job_file)).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_probe_leaves_no_container(
    start: Start, trainlaunch: Runs, make_job: Callable[..., Path], job_name: str, number: signal.Signals
) -> None:
    """Ctrl-C and a closed terminal; nothing is written."""
    script = reporting(then="time.sleep(100)")
    job_file = make_job(command=["python3", "-c", script], **UNSIZED)
    process = start("probe", str(job_file), "--write")
    read_until(process, b"trained", stderr=True)
    process.send_signal(number)
    code, out, err = ended(process)
    assert (code, out) == (130, ""), err
    assert left(trainlaunch, job_name) == []
    assert not job_file.with_name("job.lock.yaml").exists()
