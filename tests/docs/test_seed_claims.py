"""docs/seed-claims.md: each claim once, with a verdict and a command that is there; what it says was measured, is."""

from __future__ import annotations

import argparse
import importlib
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from trainlaunch.cli.arguments.verb_table import add_arguments
from trainlaunch.manuals import find_manual

from tests.conftest import Runs

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "seed-claims.md").read_text(encoding="utf-8")
VERDICTS = {"true", "false", "partly", "open"}


class Row(NamedTuple):
    """One line of a table."""

    id: str
    claim: str
    verdict: str
    measured: str
    command: str


LINE = re.compile(r"^\| ([BFN]\d+) \| (.+?) \| (.+?) \| (.+?) \| `(.+)` \|$", re.MULTILINE)
ROWS = [Row(*each) for each in LINE.findall(PAGE)]
# What the commands name, for a folder to run them in; a run called mnist is none's, and an engine may be missing.
FILES = {
    "job.yaml": "name: job\nimage: trainer:1\ncommand: [python, train.py]\nresources: {cpus: 4, memory: 16Gi}\n"
    "data_loader: {batch_size: 128, num_workers: 2, sample: [{shape: [3, 224, 224], dtype: float32}]}\n",
    "train.py": "from torch.utils.data import DataLoader\nloader = DataLoader([], num_workers=0)\n",
    "manifest.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a:1}]}\n",
    "FILE": "RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error.\n",
}
NEEDS_MORE = {"status", "lock"}  # a run, or an engine with the image
COMMANDS = sorted({each.command for each in ROWS if not each.command.startswith("trainlaunch up")})


def test_each_claim_stands_there_once() -> None:
    """By its number and by its words; each guide's are numbered without a gap."""
    assert len({each.id for each in ROWS}) == len({each.claim for each in ROWS}) == len(ROWS) > 60
    for guide in "BFN":
        numbers = sorted(int(each.id[1:]) for each in ROWS if each.id[0] == guide)
        assert numbers == list(range(1, len(numbers) + 1))
    assert PAGE.count("\n| B") + PAGE.count("\n| F") + PAGE.count("\n| N") == len(ROWS)


def is_a_command(words: list[str]) -> bool:
    """Return whether the command line takes a command, and a code that it explains is there."""
    if words[:1] != ["trainlaunch"]:
        return False
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser, importlib.import_module(f"trainlaunch.cli.verbs.{words[1]}").USAGE.arguments)
    try:
        parser.parse_args(words[2:])
    except (argparse.ArgumentError, SystemExit):
        return False
    return words[1] != "explain" or find_manual(words[2]) is not None


def test_a_claim_has_a_verdict_a_measurement_and_a_command() -> None:
    """What the page says of each is whole."""
    wrong = [
        row.id
        for row in ROWS
        if row.verdict not in VERDICTS or not row.measured.strip() or not is_a_command(shlex.split(row.command))
    ]
    assert wrong == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(command: str, tmp_path: Path, trainlaunch: Runs) -> None:
    """In a folder that has what it names, it ends as its verb's help says, and says something."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    words = shlex.split(command)[1:]
    done = trainlaunch(*words, cwd=tmp_path)
    allowed = {0, 1, 3} if words[0] in NEEDS_MORE or words[-1] == "mnist" else {0, 1}
    assert done.returncode in allowed, done.stderr
    assert done.stdout or done.stderr or words[0] in {"lint", "check"}


def measured(image: str, *options: str) -> dict[str, Any]:
    """Return what bench/seed_claims.py measures."""
    command = ["docker", "run", "--rm", "--shm-size", "1g", "-v", f"{ROOT / 'bench'}:/bench:ro", image]
    argv = [*command, "python3", "/bench/seed_claims.py", *options]
    found: dict[str, Any] = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    return found


@pytest.mark.docker
def test_what_the_page_says_was_measured_is_so(torch_image: str) -> None:
    """All that does not need a GPU, but for times."""
    found = measured(torch_image, "--without-times")
    assert found["collate_runs_in_worker"]
    assert found["collate_runs_in_main_without_workers"]
    assert (found["torch_draws_of_4_workers"], found["random_draws_of_4_workers"]) == (4, 4)
    assert (found["own_generator_draws_of_4_workers"], found["own_random_draws_of_4_workers"]) == (1, 1)
    assert found["lambda_in_dataset_under_fork"] == ""
    assert "pickle" in found["lambda_in_dataset_under_spawn"]
    assert "cannot pickle" in found["file_in_dataset_under_spawn"]
    assert "sqlite3.Connection" in found["database_pickled"]
    assert found["right_samples_of_own_handles"] == 20_000
    assert found["exception_in_worker"].startswith("ZeroDivisionError: Caught ZeroDivisionError in DataLoader worker")
    assert "NoneType" in found["none_in_batch"]
    assert found["samples_of_a_stream_of_10_with_4_workers"] == 40
    assert "Expected more than 1 value per channel" in found["batch_norm_of_one"]
    assert found["mib_of_4_forked_workers_beside_256"] < 256


@pytest.mark.docker
@pytest.mark.long
def test_times_are_in_the_order_that_the_page_says(torch_image: str) -> None:
    """By their order only, since machines differ; one that does much else may turn it round."""
    found = measured(torch_image)
    without, persistent = found["second_epoch_seconds"]
    assert persistent < without
    assert found["cheap_samples_without_workers_seconds"] < found["cheap_samples_with_4_workers_seconds"]
    assert found["slow_samples_with_4_workers_seconds"] < found["slow_samples_without_workers_seconds"]
