"""What the tests of the examples share: each example's job trained once, and its script run plainly once."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.conftest import ROOT, Runs
from tests.engine import images

EXAMPLES = ROOT / "examples"
MEASURED = Path(__file__).parent / "measured"
PLAINLY = Path(__file__).parent / "plainly"
NAMES = sorted(each.parent.name for each in EXAMPLES.glob("*/job.yaml"))
# What is run as `python SCRIPT ARGS`, by name.
PLAIN = {name: f"/examples/{name}/train.py --epochs 1" for name in NAMES if name not in {"quickstart", "two_nodes"}} | {
    "hugging_face": "/examples/hugging_face/train.py --num_train_epochs 1 --train_sentences 64 --test_sentences 32",
    "sqlite_metadata": "/examples/sqlite_metadata/train.py --workers 2 --epochs 2",
    "corrupt_samples": "/examples/corrupt_samples/train.py --workers 2 --epochs 2 --damaged 0.01 --allowed 0.02",
    "worker_seeding": "/examples/worker_seeding/train.py --epochs 2",
    "worker_seeding in workers": "/examples/worker_seeding/train.py --epochs 3 --workers 2 --persistent",
    "too many corrupt_samples": "/examples/corrupt_samples/train.py --damaged 0.05",
    "advice": "/plainly/advice.py",
}
LARGE = frozenset({"hugging_face", "lightning"})  # need the image with large libraries
# Their jobs differ from others' in the script alone, which the default runs plainly.
ALIKE = frozenset({"corrupt_samples", "sqlite_metadata", "worker_seeding"})
SECONDS = 900  # on a machine that does much else


def marked(names: Iterable[str], *, long: frozenset[str] = frozenset()) -> list[Any]:
    """Return names as parameters; those of `long`, and of examples with large libraries, run only where asked for."""
    marks = {**dict.fromkeys(long, pytest.mark.long), **dict.fromkeys(LARGE, pytest.mark.libraries)}
    return [pytest.param(each, marks=marks[each]) if each in marks else each for each in names]


def image_for(name: str) -> str:
    """Return the tests' own image that has what an example imports, made first where the engine has none."""
    return images.examples_image() if name in LARGE else images.torch_image()


class Plain(NamedTuple):
    """How a script ended that was run as `python SCRIPT ARGS`."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Trained:
    """An example's job that `up` ran: what it printed, and what each rank took from its DataLoaders."""

    code: int
    out: str
    err: str
    ranks: tuple[dict[str, int], ...]


def job(name: str) -> dict[str, Any]:
    """Return an example's job file as YAML reads it."""
    read: dict[str, Any] = yaml.safe_load((EXAMPLES / name / "job.yaml").read_text(encoding="utf-8"))
    return read


def _own_volume(mount: dict[str, Any]) -> dict[str, Any]:
    """Return a mount; a volume is the tests' own, and none that a user's run has filled."""
    return {**mount, "source": f"trainlaunch-test.{mount['source']}"} if mount["type"] == "volume" else mount


def settings_of(example: str, **changed: object) -> list[str]:
    """Return `--set` arguments that run an example's job beside its measuring, on a machine with two CPUs."""
    measured = {"type": "bind", "source": str(MEASURED), "target": "/measured", "read_only": True}
    every = {
        "mounts": json.dumps([*map(_own_volume, job(example)["mounts"]), measured]),
        "env.PYTHONPATH": "/measured",
        "resources.cpus": 2,
        **changed,
    }
    return [word for key, value in every.items() for word in ("--set", f"{key}={value}")]


@pytest.fixture(scope="session")
def image_of(engine: str, own_label: str) -> Iterator[Callable[[str], str]]:
    """Return the image of an example: what its own Dockerfile makes without a network, else the tests' own."""
    made: list[str] = []

    @cache
    def image(name: str) -> str:
        if not (EXAMPLES / name / "Dockerfile").exists():
            return image_for(name)
        tag = f"trainlaunch-test:{name}-{own_label.partition('=')[2]}"
        build = ["docker", "build", "--network=none", f"--build-arg=BASE={image_for(name)}", f"--tag={tag}"]
        built = subprocess.run(
            [*build, str(EXAMPLES / name)], capture_output=True, text=True, check=False, timeout=SECONDS
        )
        assert built.returncode == 0, built.stdout + built.stderr
        made.append(tag)
        return tag

    yield image
    if made:
        subprocess.run(["docker", "image", "rm", "--force", *made], capture_output=True, check=True, timeout=60)


def _remove(volumes: list[str]) -> None:
    """Remove volumes, which an engine lets go of a moment after their last container."""
    for _ in range(20):
        gone = subprocess.run(
            ["docker", "volume", "rm", "--force", *volumes], capture_output=True, text=True, check=False, timeout=60
        )
        if gone.returncode == 0:
            return
        time.sleep(0.5)
    pytest.fail(gone.stderr)


@pytest.fixture(scope="session")
def trained(image_of: Callable[[str], str], trainlaunch: Runs, own_label: str) -> Callable[[str], Trained]:
    """Return how an example's job went, which `up` ran once with the example's own arguments."""
    key, _, value = own_label.partition("=")

    @cache
    def train(name: str) -> Trained:
        run = f"{job(name)['name']}-{value}"
        changed = settings_of(name, image=image_of(name), name=run, **{f"labels.{key}": value})
        done = trainlaunch("up", "job.yaml", *changed, cwd=EXAMPLES / name, timeout=SECONDS)
        assert trainlaunch("down", run).returncode == 0
        volumes = [_own_volume(each)["source"] for each in job(name)["mounts"] if each["type"] == "volume"]
        if volumes:
            _remove(volumes)
        told = re.findall(r"^measured (\{.*\})$", done.stderr, re.MULTILINE)
        return Trained(done.returncode, done.stdout, done.stderr, tuple(json.loads(each) for each in told))

    return train


@pytest.fixture(scope="session")
def plain(engine: str, own_label: str) -> Callable[[str], Plain]:
    """Return how a script of PLAIN ended outside trainlaunch; those of an image run in one container, which imports
    torch once.
    """

    @cache
    def results(image: str) -> dict[str, Plain]:
        scripts = {name: script for name, script in PLAIN.items() if image_for(name) == image}
        mounts = [f"--volume={EXAMPLES}:/examples:ro", f"--volume={PLAINLY}:/plainly:ro", "--workdir=/tmp"]
        flags = [
            "--rm",
            "--init",
            "--network=none",
            "--shm-size=1g",
            "--env=OMP_NUM_THREADS=1",
            f"--label={own_label}",
            *mounts,
        ]
        argv = ["python", "/plainly/run.py", json.dumps([each.split() for each in scripts.values()])]
        run = ["docker", "run", *flags, image, *argv]
        done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        return {name: Plain(*each) for name, each in zip(scripts, json.loads(done.stdout), strict=True)}

    return lambda name: results(image_for(name))[name]
