"""bench/tune.py has the cases that it says, and its program trains and times them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import tune as bench
from tests.conftest import Runs


def test_its_cases_are_three_loaders_two_steps_and_the_cpus_of_the_machine() -> None:
    """One and two CPUs on every machine."""
    names = [each.name for each in bench.cases()]
    assert len(names) == len(set(names)) >= 12
    assert {"decode-small-1cpu", "io-large-2cpu", "tiny-small-2cpu"} <= set(names)


def test_a_setting_without_workers_has_one_name() -> None:
    """A prefetch factor means nothing there."""
    assert bench.setting({"num_workers": 0, "prefetch_factor": 8, "threads": 2}, 2) == "0:2"
    assert bench.setting({"num_workers": 0, "prefetch_factor": 2, "threads": 1}, 2) == "0:2:1"
    assert bench.setting({"num_workers": 3, "prefetch_factor": 4, "threads": None}, 2) == "3:4"


@pytest.mark.docker
@pytest.mark.parametrize("step", ["small", pytest.param("large", marks=pytest.mark.long)])
def test_its_program_times_each_setting_that_it_is_given(docker_run: Runs, torch_image: str, step: str) -> None:
    """In the order given, each with its own rate."""
    folder = Path(bench.PROGRAM).parent
    flags = ("--cpus=1", "--env=CPUS=1", "--shm-size=512m", f"--volume={folder}:/job:ro")
    done = docker_run(*flags, torch_image, "python", "/job/train.py", "io", step, "0:2,2:2,0:2:1", "0.5")
    assert done.returncode == 0, done.stderr
    timed = json.loads(done.stdout)
    assert [name for name, _ in timed] == ["0:2", "2:2", "0:2:1"]
    assert all(rate > 0 for _, rate in timed)
