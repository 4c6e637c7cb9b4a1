"""A local job that waits too long for a batch: noticed, stopped where asked, its files removed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Runs
from tests.local.conftest import MakeJob, Start
from tests.run.test_stall import WATCHED, stalling
from tests.run.test_up import ended, read_until


def shm_folders(job: str) -> list[Path]:
    return list(Path("/dev/shm").glob(f".trainlaunch-{job}-*"))


@pytest.fixture
def stalled(make_job: MakeJob, tmp_path: Path) -> Path:
    """Write a job that stalls in its third batch, with what stands in for torch."""
    return make_job(**stalling(tmp_path), healthcheck=WATCHED, restart={"max_attempts": 2})


def test_a_stalled_job_is_stopped_and_tried_again(trainlaunch: Runs, stalled: Path, job_name: str) -> None:
    """Both attempts stall; the sentence names the rank, and nothing of ours stays in the host's /dev/shm."""
    done = trainlaunch("up", str(stalled))
    assert done.returncode == 143, done.stderr
    said = [each for each in done.stderr.splitlines() if "for one batch" in each and "stopping the job" in each]
    assert len(said) == 2
    assert "rank 0 has waited" in said[0]
    assert "attempt 1 of 2 ended with exit code 143; starting attempt 2" in done.stderr
    assert "cause[TL671]" in done.stderr
    assert shm_folders(job_name) == []
    status = trainlaunch("wait", job_name)
    assert status.returncode == 143
    assert "TL671" in status.stderr


def test_a_stalled_job_is_only_reported_by_default(trainlaunch: Runs, make_job: MakeJob, tmp_path: Path) -> None:
    """`up` says it once, and the deadline ends it."""
    watched: dict[str, Any] = {key: value for key, value in WATCHED.items() if key != "on_unhealthy"}
    job = make_job(**stalling(tmp_path), healthcheck=watched, active_deadline="12s")
    done = trainlaunch("up", str(job))
    assert done.stderr.count("the health check says: unhealthy: rank 0 has waited") == 1
    assert "active_deadline 12s is over" in done.stderr


def test_status_tells_a_wait(start: Start, trainlaunch: Runs, make_job: MakeJob, tmp_path: Path, job_name: str) -> None:
    """Who waits too long is unhealthy there."""
    watched = {key: value for key, value in WATCHED.items() if key != "on_unhealthy"}
    process = start("up", str(make_job(**stalling(tmp_path), healthcheck=watched)))
    read_until(process, b"batch 2\n")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        status = trainlaunch("status", job_name, "-o", "json")
        if "for one batch" in status.stdout:
            break
        time.sleep(0.5)
    assert status.returncode == 1
    assert json.loads(status.stdout)
    assert trainlaunch("down", job_name).returncode == 0
    ended(process)
