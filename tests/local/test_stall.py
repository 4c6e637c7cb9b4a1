"""A local job that waits too long for a batch: noticed, stopped where asked, its files removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.run.base import watch

from tests.conftest import Runs
from tests.local.conftest import MakeJob, Start
from tests.run.test_stall import WATCHED, stalling
from tests.run.test_up import ended, read_until


def shm_folders(job: str) -> list[Path]:
    return list(Path("/dev/shm").glob(f".trainlaunch-{job}-*"))


def test_a_stalled_job_is_stopped_and_tried_again(
    trainlaunch: Runs, make_job: MakeJob, tmp_path: Path, job_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both attempts stall; the sentence names the rank, and nothing of ours stays in the host's /dev/shm."""
    monkeypatch.setattr(watch, "HEALTH_SECONDS", 0.5)
    soon = {**WATCHED, "stall_after": "1s"}
    job = make_job(**stalling(tmp_path), healthcheck=soon, restart={"max_attempts": 2})
    done = trainlaunch("up", str(job))
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


def test_a_stalled_job_is_only_reported_by_default(
    start: Start, trainlaunch: Runs, make_job: MakeJob, tmp_path: Path, job_name: str
) -> None:
    """`up` says it, and goes on; `status` finds the run unhealthy."""
    watched: dict[str, Any] = {key: value for key, value in WATCHED.items() if key != "on_unhealthy"}
    process = start("up", str(make_job(**stalling(tmp_path), healthcheck=watched)))
    read_until(process, b"the health check says: unhealthy: rank 0 has waited", stderr=True)
    status = trainlaunch("status", job_name, "-o", "json")
    assert status.returncode == 1
    told = json.loads(status.stdout)
    (container,) = told["containers"]
    assert (told["state"], container["health"]) == ("running", "unhealthy")
    assert "for one batch" in status.stdout
    assert trainlaunch("down", job_name).returncode == 0
    ended(process)
