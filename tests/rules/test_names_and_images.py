"""What is said of a job's name, its image, and of what a host does not apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.rules import check_plan, plan_job

from tests.jobs import codes_of, job_with, plan_with

LIMITS = {"cpus": 2, "memory": "4Gi"}


@pytest.mark.parametrize(
    ("image", "floating"),
    [
        ("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", False),
        ("pytorch/pytorch:latest", True),
        ("pytorch/pytorch", True),
        ("localhost:5000/trainer", True),
        ("localhost:5000/trainer:3", False),
        ("trainer@sha256:" + "0" * 64, False),
    ],
)
def test_a_floating_tag_is_a_finding(tmp_path: Path, image: str, floating: bool) -> None:
    """No tag or latest warns; a port is no tag and a digest is fixed."""
    plan = plan_with(tmp_path, image=image)
    assert ("TL111" in codes_of(plan)) is floating


def test_what_has_no_effect_is_one_finding(tmp_path: Path) -> None:
    """TL404 lists the stated fields, and no finding speaks of the image."""
    plan = plan_with(
        tmp_path, "local", image="trainer", user="1", ulimits={"nofile": 9}, read_only=True, shm_size="1Gi"
    )
    assert codes_of(plan) == ["TL404", "TL209"]
    finding = check_plan(plan)[0]
    assert "image, user, ulimits, read_only; shm_size is not enforced" in finding.message


@pytest.mark.parametrize(
    ("name", "fields", "refused"),
    [
        ("3d-unet", {}, False),
        ("3d-unet", {"kubernetes": {"kind": "pod"}}, False),
        ("3d-unet", {"kubernetes": {"kind": "jobset"}}, True),
        ("3d-unet", {"kubernetes": {"kind": "pytorchjob"}}, True),
        ("3d-unet", {"torchrun": {"nnodes": 2}}, True),
        ("unet-3d", {"torchrun": {"nnodes": 2}}, False),
    ],
)
def test_a_service_is_named_with_a_letter_first(
    tmp_path: Path, name: str, fields: dict[str, object], refused: bool
) -> None:
    """A name that starts with a digit is refused where a Service gets it, with the name to type."""
    job = job_with(tmp_path, "kubernetes", name=name, resources=LIMITS, **fields)
    if not refused:
        plan_job(job)
        return
    with pytest.raises(JobFileRejected) as stopped:
        plan_job(job)
    (found,) = stopped.value.diagnostics
    assert (found.code, found.field, found.fix) == ("TL107", "name", "set name to job-3d-unet")
    assert found.span is not None


@pytest.mark.parametrize(
    ("target", "restart", "said"),
    [
        ("kubernetes", {"max_attempts": 2, "backoff": "30s"}, True),
        ("kubernetes", {"backoff": "30s"}, True),
        ("kubernetes", {"max_attempts": 2}, False),
        ("docker", {"max_attempts": 2, "backoff": "30s"}, False),
        ("local", {"max_attempts": 2, "backoff": "30s"}, False),
    ],
)
def test_a_backoff_on_kubernetes_is_its_controllers(
    tmp_path: Path, target: str, restart: dict[str, Any], said: bool
) -> None:
    """It is in effect on the other targets, where nothing is said."""
    limits = {"cpus": 1, "memory": "1Gi"}
    assert ("TL405" in codes_of(plan_with(tmp_path, target, resources=limits, restart=restart))) is said


def test_attempts_without_a_checkpoint_are_a_warning(tmp_path: Path) -> None:
    """Each would train from the start; one attempt, and a folder to go on from, say nothing."""
    saved: dict[str, Any] = {"mounts": [{"type": "volume", "source": "saved", "target": "/s"}], "checkpoint_dir": "/s"}
    assert "TL213" in codes_of(plan_with(tmp_path, restart={"max_attempts": 2}))
    assert "TL213" not in codes_of(plan_with(tmp_path, restart={"max_attempts": 1}))
    assert "TL213" not in codes_of(plan_with(tmp_path, restart={"max_attempts": 2}, **saved))
