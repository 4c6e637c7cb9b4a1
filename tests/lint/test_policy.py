"""A policy's severities and ceilings in what `lint` says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runners import Runs, run_started

RUN = "docker run --rm -m 8g --shm-size=2g t:1 python train.py --num-workers 4\n"


@pytest.fixture
def trainlaunch() -> Runs:
    """Run the command line in a process of its own: `lint` looks for the policies of a folder once."""
    return run_started


def said(trainlaunch: Runs, folder: Path, policy: str, *options: str) -> tuple[int, list[str]]:
    """Return the exit code and the code and severity of each finding in a folder under a policy above it."""
    (folder / "trainlaunch-policy.yaml").write_text(policy)
    (folder / "jobs").mkdir(exist_ok=True)
    (folder / "jobs" / "run.sh").write_text(RUN)
    done = trainlaunch("lint", str(folder / "jobs"), "-o", "concise", *options)
    return done.returncode, [" ".join(line.split(": ")[1].split()) for line in done.stdout.splitlines()]


def test_severities_of_the_policy_above_a_file_apply(trainlaunch: Runs, tmp_path: Path) -> None:
    """One that is off isn't said, and an info that is made an error fails."""
    options = ("--select", "practice")
    assert said(trainlaunch, tmp_path, "max: {}\n", *options) == (0, ["info TL367", "info TL368"])
    policy = "severities: {TL367: error, TL368: off}\n"
    assert said(trainlaunch, tmp_path, policy, *options) == (1, ["error TL367"])


def test_a_stated_value_above_a_ceiling_is_an_error(trainlaunch: Runs, tmp_path: Path) -> None:
    """As it is of a job file; what the text doesn't state is unknown and said by nobody."""
    policy = "max: {memory: 4Gi, shm_size: 2Gi, num_workers: 2, cpus: 1, gpus: 0}\n"
    assert said(trainlaunch, tmp_path, policy) == (1, ["error TL140", "error TL140"])


def test_another_policy_can_be_named_and_a_wrong_one_is_one_error(trainlaunch: Runs, tmp_path: Path) -> None:
    """`--policy` is the only one then, as for the verbs of job files."""
    other = tmp_path / "other.yaml"
    other.write_text("severities: {TL367: nonsense}\n")
    assert said(trainlaunch, tmp_path, "max: {memory: 4Gi}\n", "--policy", str(other)) == (1, [])
    other.write_text("max: {memory: 16Gi}\n")
    assert said(trainlaunch, tmp_path, "max: {memory: 4Gi}\n", "--policy", str(other)) == (0, [])
