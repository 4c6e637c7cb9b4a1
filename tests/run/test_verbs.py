"""ps, status, logs, wait and down on real runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Runs
from tests.run.conftest import ROOT, containers_of, docker

pytestmark = pytest.mark.docker
MakeJob = Callable[..., Path]


def test_ps_and_status_tell_a_failed_run_by_state_and_code(trainlaunch: Runs, make_job: MakeJob, job_name: str) -> None:
    """`ps`: a row a run in text, with its containers in JSON; `status`: a finding, so exit 1."""
    job = str(make_job(command=["/bin/sh", "-c", "exit 4"]))
    assert trainlaunch("up", job).returncode == 4
    row = next(each for each in trainlaunch("ps").stdout.splitlines() if each.startswith(job_name))
    assert [*row.split()[:1], *row.split()[3:5], row.split()[-1]] == [job_name, "exited", "4", "docker"]
    document = json.loads(trainlaunch("ps", "-o", "json").stdout)
    assert document["schema_version"] == 3
    (run,) = [each for each in document["runs"] if each["job"] == job_name]
    assert (run["state"], run["exit_code"], run["containers"][0]["shm"]["size"]) == ("failed", 4, 64 << 20)
    status = trainlaunch("status", job)
    assert (status.returncode, "ended with exit code 4" in status.stdout) == (1, True)


def test_status_of_a_running_job(trainlaunch: Runs, make_job: MakeJob, job_name: str) -> None:
    """/dev/shm used, peak, size and need, health, workers running against planned; by file and by name."""
    script = "dd if=/dev/zero of=/dev/shm/x bs=1M count=7 2>/dev/null; sleep 60"
    job = str(make_job(command=["/bin/sh", "-c", script]))
    assert trainlaunch("up", "-d", job).returncode == 0
    _until(lambda: "used 7.0 MiB" in trainlaunch("status", job_name).stdout)
    done = trainlaunch("status", job)
    assert done.returncode == 0
    assert "size 64 MiB" in done.stdout
    assert "workers    0 running, 0 planned" in done.stdout
    (container,) = json.loads(trainlaunch("status", job_name, "-o", "json").stdout)["containers"]
    assert 7 << 20 <= container["shm"]["used"] < 8 << 20
    assert container["shm"]["peak"] >= container["shm"]["used"]
    assert (container["shm"]["size"], container["health"]) == (64 << 20, "starting")


def _until(condition: Callable[[], bool]) -> None:
    """Ask again until it is so; at most 60 times."""
    for _ in range(60):
        if condition():
            return
    pytest.fail("it never came")


def test_logs_and_wait_give_output_and_code(trainlaunch: Runs, make_job: MakeJob, job_name: str) -> None:
    """From the first line to the last, streams apart; -f has the job's code, plain logs have 0."""
    job = str(make_job(command=["/bin/sh", "-c", "echo one; echo bad >&2; sleep 1; echo two; exit 11"]))
    trainlaunch("up", "-d", job)
    followed = trainlaunch("logs", "-f", job_name)
    assert (followed.returncode, followed.stdout) == (11, "one\ntwo\n")
    assert "\nbad\n" in followed.stderr
    assert trainlaunch("wait", job).returncode == 11
    printed = trainlaunch("logs", job)
    assert (printed.returncode, printed.stdout) == (0, "one\ntwo\n")


def test_down_removes_the_job_and_nothing_else(
    trainlaunch: Runs, make_job: MakeJob, job_name: str, docker_run: Runs, base_image: str
) -> None:
    """All its containers, running ones and kept ones, and their anonymous volumes; the neighbour stays."""
    neighbour = docker("create", "--label=trainlaunch-test=neighbour", "--name", f"{job_name}-x", base_image, "true")
    job = str(make_job(command=["/bin/sh", "-c", "exit 0"], mounts=[{"type": "scratch", "target": "/scratch"}]))
    trainlaunch("up", job)
    job = str(make_job(command=["/bin/sh", "-c", "sleep 60"], mounts=[{"type": "scratch", "target": "/scratch"}]))
    trainlaunch("up", "-d", job)
    volumes = [_anonymous_volume(each) for each in containers_of(job_name)]
    try:
        done = trainlaunch("down", job_name, "--all")
        assert done.returncode == 0
        assert f"stopping {job_name}" in done.stderr
        assert containers_of(job_name) == []
        assert docker("volume", "ls", "--quiet").split().count(volumes[0]) == 0
        assert len(volumes) == 2
        assert docker("inspect", "--format", "{{.Name}}", neighbour) == f"/{job_name}-x"
    finally:
        docker("rm", neighbour)


def _anonymous_volume(container: str) -> str:
    return docker("inspect", "--format", "{{(index .Mounts 0).Name}}", container)


@pytest.mark.parametrize(("verb", "code"), [("status", 3), ("logs", 3), ("wait", 125), ("down", 3)])
def test_no_such_run_is_said(trainlaunch: Runs, engine: str, verb: str, code: int) -> None:
    """TL510, and what would list or start one; nothing to do is not success."""
    done = trainlaunch(verb, "no-such-job-here")
    assert (done.returncode, done.stdout) == (code, "")
    assert "error[TL510]: this host has no run of job no-such-job-here" in done.stderr
    assert "trainlaunch ps" in done.stderr


def test_a_container_that_never_started_has_no_code(trainlaunch: Runs, job_name: str, base_image: str) -> None:
    """The engine answers 0 at once; that would be a success that nobody had."""
    docker("create", f"--label=dev.trainlaunch.job={job_name}", base_image, "true")
    for verb in (["wait"], ["logs", "-f"]):
        done = trainlaunch(*verb, job_name)
        assert (done.returncode, "has not started" in done.stderr) == (125, True)


def test_status_of_a_job_that_ended_well_is_0(trainlaunch: Runs, make_job: MakeJob) -> None:
    """The engine calls it unhealthy then, as every container that has ended."""
    job = str(make_job(command=["/bin/sh", "-c", "exit 0"]))
    trainlaunch("up", job)
    assert trainlaunch("status", job).returncode == 0


def test_a_log_that_can_not_be_written_is_no_success(make_job: MakeJob) -> None:
    """A full disk is said (TL116); a job that is followed goes on."""
    job = str(make_job(command=["/bin/sh", "-c", "echo one; exit 4"]))
    main = f"{sys.executable} -m trainlaunch"
    followed = _shell(f"{main} up {job} >/dev/full")
    assert (followed.returncode, "stdout can't be written" in followed.stderr) == (4, True)
    printed = _shell(f"{main} logs {job} >/dev/full")
    assert (printed.returncode, "TL116" in printed.stderr) == (2, True)


def _shell(line: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "launcher")}
    return subprocess.run(["/bin/sh", "-c", line], env=env, capture_output=True, text=True, timeout=90, check=False)
