"""The quickstart trains to the accuracy that its README states, and its job files show what their first lines claim."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from trainlaunch.units import GIB, MIB

from tests.conftest import ROOT, Runs

FOLDER = ROOT / "examples" / "quickstart"
JOBS = sorted(each.name for each in FOLDER.glob("*.yaml"))
# `.ci/run` trains job.yaml to its accuracy as README's first command; by default one epoch of large batches is enough.
TRAINED = [
    pytest.param("dies-of-64mb.yaml", ("--epochs", "1"), 0.4, id="one-epoch"),
    *(pytest.param(each, (), 0.95, id=each, marks=pytest.mark.long) for each in JOBS),
]
TARGETS = ("docker", "compose", "kubernetes")
DOCKER_DEFAULT = 64 * MIB
ACCURACY = re.compile(r"^test accuracy (0\.\d+|1\.0+) on 450 unseen digits$", re.MULTILINE)
DEATHS_OF_SHM = ("unable to allocate shared memory", "killed by signal: Bus error", "exited unexpectedly")
PRINT_SHM = ("/bin/sh", "-c", 'df --block-size=1 --output=size /dev/shm; exec "$@"', "sh")


def job(name: str) -> dict[str, Any]:
    """Return a job file of the example as YAML reads it."""
    read: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return read


def plan(trainlaunch: Runs, name: str) -> dict[str, Any]:
    """Return `plan -o json` of a job file of the example."""
    done = trainlaunch("plan", name, "-o", "json", cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def plain_command() -> list[str]:
    """Return the words of the README's plain `docker run`, with this folder in the place of $PWD."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^docker run (?:.*\\\n)*.*", text, re.MULTILINE)
    assert found, "the example's README has no plain docker run"
    return shlex.split(found[0].replace("\\\n", " ").replace("$PWD", str(FOLDER)))


@pytest.fixture(scope="module")
def image(torch_image: str, own_label: str) -> Iterator[str]:
    """Return the example's own image, built without a network on the local stand-in for its base."""
    tag = f"trainlaunch-test:quickstart-{own_label.partition('=')[2]}"
    built = subprocess.run(
        ["docker", "build", "--network=none", f"--build-arg=BASE={torch_image}", f"--tag={tag}", str(FOLDER)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    yield tag
    subprocess.run(["docker", "image", "rm", "--force", tag], capture_output=True, check=True, timeout=60)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", JOBS)
def test_each_job_file_renders_for_each_target(name: str, target: str, trainlaunch: Runs) -> None:
    """One file serves all targets: nothing in it is refused by one of them."""
    done = trainlaunch("render", name, "--target", target, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    assert "/workspace/train.py" in done.stdout


def test_large_batches_need_more_than_the_floor(trainlaunch: Runs) -> None:
    """Half of the memory, or 2 GiB, would not do for these batches, and the plan gives what they need."""
    planned = plan(trainlaunch, "job-large-batches.yaml")
    floor = min(2 * GIB, planned["memory"]["limit"] // 2)
    assert floor < planned["shm"]["need"] <= planned["shm"]["size"]


def test_one_batch_of_the_dying_job_exceeds_what_docker_gives(trainlaunch: Runs) -> None:
    """The first batch already fills the default /dev/shm, so how fast batches are consumed doesn't matter."""
    batch = plan(trainlaunch, "dies-of-64mb.yaml")["shm"]["loaders"][0]["batch_bytes"]
    assert batch > DOCKER_DEFAULT


def test_readme_runs_the_dying_job_plainly() -> None:
    """The README's plain `docker run` is the command of dies-of-64mb.yaml, with its numbers filled in."""
    dies = job("dies-of-64mb.yaml")
    numbers = {f"{{{key}}}": str(dies["data_loader"][key]) for key in ("num_workers", "batch_size")}
    argv = [numbers.get(each, each) for each in dies["command"]]
    assert plain_command()[-len(argv) - 1 :] == [dies["image"], *argv]


@pytest.mark.docker
@pytest.mark.parametrize(("name", "arguments", "stated"), TRAINED)
def test_up_trains_to_the_stated_accuracy_in_the_planned_shm(
    name: str, arguments: tuple[str, ...], stated: float, image: str, trainlaunch: Runs, own_label: str
) -> None:
    """`up` ends with 0, the accuracy on unseen digits is as stated, and `df` inside shows the plan's /dev/shm."""
    key, _, value = own_label.partition("=")
    run = f"{job(name)['name']}-{value}"
    command = json.dumps([*PRINT_SHM, *job(name)["command"], *arguments])
    changed = (f"image={image}", f"name={run}", f"labels.{key}={value}", f"command={command}")
    settings = [word for each in changed for word in ("--set", each)]
    done = trainlaunch("up", name, *settings, cwd=FOLDER, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    accuracy = ACCURACY.search(done.stdout)
    assert accuracy, done.stdout
    assert float(accuracy[1]) >= stated
    assert int(done.stdout.split()[1]) == plan(trainlaunch, name)["shm"]["size"]
    assert trainlaunch("down", run).returncode == 0


@pytest.mark.docker
def test_plain_docker_run_of_the_same_command_dies_of_64_mb(image: str, own_label: str) -> None:
    """Without a --shm-size torch can't put one batch into /dev/shm, and says so in one of its known texts."""
    _docker, _run, *words = plain_command()
    words[words.index(job("dies-of-64mb.yaml")["image"])] = image
    done = subprocess.run(
        ["docker", "run", f"--label={own_label}", *words], capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode == 1, done.stderr
    assert any(each in done.stderr for each in DEATHS_OF_SHM), done.stderr
    assert not ACCURACY.search(done.stdout)


def test_too_small_a_shm_size_never_starts(trainlaunch: Runs) -> None:
    """64 MiB for these batches is a plan error before any engine is asked."""
    done = trainlaunch("up", "dies-of-64mb.yaml", "--set", "shm_size=64m", cwd=FOLDER)
    assert done.returncode == 125
    assert "TL202" in done.stderr
