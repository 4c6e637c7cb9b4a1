"""Two containers train one model together: gloo's all-reduce between real containers, through the real Compose."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.conftest import ROOT, Runs

FOLDER = ROOT / "examples" / "two_nodes"
ALL_AGREE = "[0] all 2 ranks agree; each of 2048 samples was seen once an epoch"


@pytest.fixture
def settings(trainlaunch: Runs, compose: str, torch_image: str, own_label: str) -> Iterator[list[str]]:
    """Return the options that run the example under a name of this test run; what is left of it is removed."""
    key, _, value = own_label.partition("=")
    changed = (f"image={torch_image}", f"name=two-nodes-{value}", f"labels.{key}={value}")
    yield [word for each in changed for word in ("--set", each)]
    trainlaunch("down", f"two-nodes-{value}")


@pytest.mark.docker
def test_two_nodes_train_one_model(trainlaunch: Runs, settings: list[str]) -> None:
    """Both join one rendezvous, each sees its own shard, all have the same weights, and the data's own are found."""
    done = trainlaunch("up", "job.yaml", *settings, cwd=FOLDER, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ALL_AGREE in done.stdout.splitlines()
    told = sorted(line.partition(", ")[0].split()[2:] for line in done.stdout.splitlines() if "] rank " in line)
    assert [each[:3] for each in told] == [["0", "of", "2"], ["1", "of", "2"]]
    assert {each[-1][-2:] for each in told} == {"-0", "-1"}


@pytest.mark.docker
@pytest.mark.long
def test_a_rank_that_fails_ends_both_nodes(trainlaunch: Runs, settings: list[str]) -> None:
    """torchrun's own code is up's, the other node does not wait for ever, and the error is told."""
    breaks = "import os, runpy, sys; sys.argv = sys.argv[1:]; assert os.environ['RANK'] == '0', 'this rank is broken'; "
    command = json.dumps(["python", "-c", breaks + "runpy.run_path(sys.argv[0], run_name='__main__')", *script()])
    done = trainlaunch("up", "job.yaml", *settings, "--set", f"command={command}", cwd=FOLDER, timeout=600)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "AssertionError: this rank is broken" in done.stderr
    assert "the job ended with exit code 1 on node " in done.stderr


def script() -> list[str]:
    """Return the example's script and its arguments."""
    words: list[str] = yaml.safe_load((FOLDER / "job.yaml").read_text(encoding="utf-8"))["command"][1:]
    return words
