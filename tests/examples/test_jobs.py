"""Every example plans without a finding, renders for each target, trains, and takes the /dev/shm that it states."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Runs
from tests.examples.conftest import ALIKE, EXAMPLES, NAMES, PLAIN, Plain, Trained, job, marked, settings_of

OWN = [each for each in NAMES if each not in {"quickstart", "two_nodes"}]  # which have tests of their own
TARGETS = ("docker", "compose", "kubernetes")
ACCURACY = re.compile(r"accuracy (0\.\d+|1\.0+)(?: on \d+ unseen \w+.*)?$", re.MULTILINE)
STATED_ACCURACY = 0.9
PAGE = 4096
# Files of trainlaunch's own in /dev/shm: the peak that the health check noted, and the file that it tries.
OF_HEALTH_CHECK = 2 * PAGE
# Where both loaders are alive and never full at the same time, need is that much above the peak: the workers that train
# persist, but have handed over all that they had when the others start.
LOOSE = ("sqlite_metadata",)


@pytest.fixture(scope="module")
def plan_of(trainlaunch: Runs) -> Callable[[str], dict[str, Any]]:
    """Return `plan -o json` of an example, as its tests run it."""

    def plan(name: str) -> dict[str, Any]:
        done = trainlaunch("plan", "job.yaml", *settings_of(name), "-o", "json", cwd=EXAMPLES / name)
        assert done.returncode == 0, done.stderr
        read: dict[str, Any] = json.loads(done.stdout)
        return read

    return plan


@pytest.mark.parametrize("name", OWN)
def test_an_example_plans_without_a_finding(name: str, trainlaunch: Runs) -> None:
    """Not even a note: an example is what people copy."""
    done = trainlaunch("plan", "job.yaml", "-o", "json", cwd=EXAMPLES / name)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["findings"] == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", OWN)
def test_an_example_renders_for_each_target(name: str, target: str, trainlaunch: Runs) -> None:
    """One file serves all targets, and each sees the command."""
    done = trainlaunch("render", "job.yaml", "--target", target, cwd=EXAMPLES / name)
    assert done.returncode == 0, done.stderr
    assert "/workspace/train.py" in done.stdout


@pytest.mark.docker
@pytest.mark.parametrize("name", marked(OWN, long=ALIKE))
def test_an_example_trains(name: str, trained: Callable[[str], Trained]) -> None:
    """`up` ends with 0 and the last accuracy that was printed is as good as the examples state."""
    done = trained(name)
    assert done.code == 0, done.out + done.err
    printed = ACCURACY.findall(done.out)
    assert printed, done.out
    assert float(printed[-1]) >= STATED_ACCURACY


@pytest.mark.docker
@pytest.mark.parametrize("name", marked(OWN, long=ALIKE))
def test_batches_are_as_the_job_states(
    name: str, trained: Callable[[str], Trained], plan_of: Callable[[str], dict[str, Any]]
) -> None:
    """In each rank the largest batch is what `sample` says, to the page, and `batches_held` of them live at once."""
    plan, ranks = plan_of(name), trained(name).ranks
    assert len(ranks) == plan["ranks"], trained(name).err
    loader = plan["shm"]["loaders"][0]
    for each in ranks:
        assert each["unit"] == loader["batch_bytes"]
        assert each["held"] == loader["batches_held"]


@pytest.mark.docker
@pytest.mark.parametrize("name", marked(OWN, long=ALIKE))
def test_dev_shm_peaks_as_planned(
    name: str, trained: Callable[[str], Trained], plan_of: Callable[[str], dict[str, Any]]
) -> None:
    """Never above what several epochs need, and so near to it that a smaller plan would have been wrong."""
    shm, ranks = plan_of(name)["shm"], trained(name).ranks
    peak = max(each["peak"] for each in ranks)
    assert peak <= shm["multi_epoch"] + OF_HEALTH_CHECK
    slack = len(ranks) * sum(each["batch_bytes"] for each in shm["loaders"])
    assert peak >= shm["need"] - slack or name in LOOSE


@pytest.mark.docker
@pytest.mark.parametrize("name", marked(each for each in PLAIN if each in OWN))
def test_a_script_runs_outside_trainlaunch(name: str, plain: Callable[[str], Plain]) -> None:
    """`python train.py` needs no variable, no mount and no /workspace of the job."""
    done = plain(name)
    assert done.code == 0, done.err
    assert ACCURACY.search(done.out), done.out


def test_the_table_of_examples_has_them_all() -> None:
    """examples/README.md has one row for each folder, and each folder has a README."""
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| \[(\w+)\]\(\1\) \|", table, re.MULTILINE)) == NAMES
    assert all((EXAMPLES / each / "README.md").is_file() for each in NAMES)


@pytest.mark.parametrize("name", OWN)
def test_a_readme_makes_the_image_that_its_job_names(name: str) -> None:
    """Who follows the README has the image: its own Dockerfile's, or the quickstart's."""
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    folder = "." if (EXAMPLES / name / "Dockerfile").exists() else "../quickstart"
    assert f"docker build --tag {job(name)['image']} {folder}\n" in text
    assert "trainlaunch up job.yaml" in text
