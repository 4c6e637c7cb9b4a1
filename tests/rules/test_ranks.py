"""Ranks that the command starts itself are planned, or refused where nobody knows how many they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.rules import check_plan

from tests.jobs import codes_of, plan_with

TORCHRUN = ["torchrun", "--nproc_per_node", "8", "train.py"]
ACCELERATE = ["accelerate", "launch", "train.py"]
GPUS = {"gpus": 4}


@pytest.mark.parametrize(
    ("fields", "ranks"),
    [
        ({"command": TORCHRUN}, 8),
        ({"command": TORCHRUN, "resources": GPUS}, 8),
        ({"command": TORCHRUN, "resources": {"gpus": "all"}}, 8),
        ({"command": TORCHRUN, "ranks_per_container": 8}, 8),
        ({"command": ["sh", "-c", "mpirun -np 2 python train.py"]}, 2),
        ({"command": None, "script": "accelerate launch --num_processes 3 train.py\n"}, 3),
        ({"command": ["torchrun", "--nproc_per_node={nproc_per_node}", "a.py"], "resources": GPUS}, 4),
        ({"command": ["torchrun", "--nproc_per_node={nproc_per_node}", "a.py"], "ranks_per_container": 2}, 2),
        ({"command": ["deepspeed", "train.py"], "resources": GPUS}, 4),
        ({"command": [*ACCELERATE], "ranks_per_container": 2, "resources": GPUS}, 2),
    ],
)
def test_ranks_of_the_command_are_planned(tmp_path: Path, fields: dict[str, Any], ranks: int) -> None:
    """A literal number, the token, one per GPU; nothing is said of a number that is known."""
    plan = plan_with(tmp_path, **fields)
    assert plan.ranks.value == ranks
    assert {"TL207", "TL211"}.isdisjoint(codes_of(plan))


def test_eight_ranks_need_eight_times_as_much(tmp_path: Path) -> None:
    """A job that calls torchrun itself is sized as one with the block."""
    loader = {"num_workers": 2, "batch_size": 4, "sample": {"shape": [65536], "dtype": "float32"}}
    own = plan_with(tmp_path, command=TORCHRUN, data_loader=loader)
    block = plan_with(tmp_path, torchrun={"nproc_per_node": 8}, data_loader=loader)
    assert own.shm.need == block.shm.need
    assert own.ranks.derivation == "torchrun --nproc_per_node 8"
    assert own.ranks.origin.endswith("job.yaml:4")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"command": TORCHRUN, "ranks_per_container": 4},
            "ranks_per_container 4 and command.0 (torchrun --nproc_per_node 8) differ",
        ),
        (
            {"command": ["deepspeed", "train.py"], "ranks_per_container": 2, "resources": GPUS},
            "ranks_per_container 2 and command.0 (deepspeed, one per GPU: 4) differ",
        ),
        ({"command": ACCELERATE}, "command.0 calls accelerate launch, and nothing says how many ranks it starts"),
        (
            {"command": None, "script": "mpirun python train.py\n"},
            "script calls mpirun, and nothing says how many ranks it starts",
        ),
        (
            {"command": ["torchrun", "--nproc_per_node", "gpu", "train.py"]},
            "command.0 calls torchrun, and nothing says how many ranks it starts",
        ),
    ],
)
def test_ranks_that_nobody_knows_are_an_error(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    """Two numbers, or none: the sentence has both, the fix a value, and the place is in the file."""
    with pytest.raises(JobFileRejected) as rejected:
        plan_with(tmp_path, **fields)
    (found,) = rejected.value.diagnostics
    assert (found.code, found.message) == ("TL207", said)
    assert "ranks_per_container" in found.fix
    assert found.span is not None


def test_unknown_ranks_of_a_gpu_job_are_one_per_gpu_with_a_warning(tmp_path: Path) -> None:
    """A config file in the image says the number; the fix is what makes the warning go."""
    plan = plan_with(tmp_path, command=ACCELERATE, resources=GPUS)
    (found,) = [each for each in check_plan(plan) if each.code == "TL211"]
    assert plan.ranks.value == 4
    assert found.fix == 'add --num_processes "{nproc_per_node}" to the call, or ranks_per_container: 4'
    stated = ["accelerate", "launch", "--num_processes", "{nproc_per_node}", "train.py"]
    assert "TL211" not in codes_of(plan_with(tmp_path, command=stated, resources=GPUS))
    assert "TL211" not in codes_of(plan_with(tmp_path, command=ACCELERATE, resources=GPUS, ranks_per_container=4))


@pytest.mark.parametrize("command", [TORCHRUN, ACCELERATE, ["bash", "-c", "deepspeed train.py"]])
def test_a_block_in_front_of_a_call_is_an_error(tmp_path: Path, command: list[str]) -> None:
    """Each rank of the block would start all ranks again."""
    with pytest.raises(JobFileRejected) as rejected:
        plan_with(tmp_path, command=command, torchrun={"nproc_per_node": 2})
    assert [each.code for each in rejected.value.diagnostics] == ["TL109"]


def test_workers_of_all_loaders_and_ranks_are_counted_against_the_cpus(tmp_path: Path) -> None:
    """Five loaders of eight ranks; a training and a validation loader that share CPUs are usual, and idle in turns."""
    sample = [{"shape": [4097], "dtype": "int64"}]
    fields = {"resources": {"cpus": 96, "memory": "512Gi", "gpus": 8}, "torchrun": {"nproc_per_node": 8}}
    five = {"batch_size": 4, "num_workers": 8, "sample": sample, "loaders": {each: {} for each in "abcde"}}
    plan = plan_with(tmp_path, command=["python", "train.py"], **fields, data_loader=five)
    (found,) = [each for each in check_plan(plan) if each.code == "TL206"]
    assert "320 DataLoader workers (8 ranks, 5 loaders alive together) exceed resources.cpus 96" in found.message
    two = {**five, "loaders": {"train": {}, "val": {}}}
    assert "TL206" not in codes_of(plan_with(tmp_path, command=["python", "train.py"], **fields, data_loader=two))
