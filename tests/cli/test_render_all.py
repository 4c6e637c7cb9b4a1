"""`render --target all`: what the targets have in common is said once, and all their errors come together."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Runs
from tests.jobs import write_job


def test_a_warning_of_all_targets_is_said_once(trainlaunch: Runs, tmp_path: Path) -> None:
    """Three renderings of one job are one job to its author."""
    job = write_job(tmp_path, image="trainer", resources={"cpus": 4, "memory": "8Gi"})
    done = trainlaunch("render", str(job), "--target", "all")
    assert done.returncode == 0
    assert done.stderr.count("warning[TL111]") == 1


def test_errors_of_all_targets_come_together_and_once(trainlaunch: Runs, tmp_path: Path) -> None:
    """Who renders for all targets fixes the file in one go; nothing is rendered before."""
    job = write_job(tmp_path, name="x", resources={"cpus": 4}, shm_size="8G", annotations={"a": "b"})
    done = trainlaunch("render", str(job), "--target", "all")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("error[TL108]") == 1
    for each in ("docker has no annotations", "compose has no annotations", "resources.memory is missing"):
        assert done.stderr.count(each) == 1


def test_a_file_in_the_folders_place_is_named(trainlaunch: Runs, tmp_path: Path) -> None:
    """--write-to takes a folder."""
    job = write_job(tmp_path)
    done = trainlaunch("render", str(job), "--write-to", str(job))
    assert done.returncode == 2
    assert "job.yaml can't be written: it is not a folder" in done.stderr


def test_a_name_of_one_character_is_refused_before_docker_does(trainlaunch: Runs, tmp_path: Path) -> None:
    """Docker takes container names from two characters on."""
    assert "error[TL114]" in trainlaunch("render", str(write_job(tmp_path)), "--name", "m").stderr
    short = str(write_job(tmp_path, name="m", resources={"cpus": 4, "memory": "8Gi"}))
    for target in ("docker", "compose"):
        refused = trainlaunch("render", short, "--target", target).stderr
        assert f"error[TL401]: {target} has no container names of one character" in refused
    assert trainlaunch("render", short, "--target", "kubernetes").returncode == 0
