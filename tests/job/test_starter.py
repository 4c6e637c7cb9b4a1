"""Which call in a command or a script starts ranks, and how many, as its text tells it."""

from __future__ import annotations

import shlex

import pytest
from trainlaunch.job.starter import AS_PLANNED, PER_GPU, Count
from trainlaunch.job.starter_search import starter_of

COMMANDS: list[tuple[str, Count]] = [
    ("torchrun --nproc_per_node 8 train.py", 8),
    ("torchrun --standalone --nnodes=1 --nproc-per-node=4 train.py --nproc_per_node 2", 4),
    ("torchrun --nproc 3 train.py", 3),
    ("torchrun train.py", 1),
    ("torchrun --nproc_per_node gpu train.py", PER_GPU),
    ("torchrun --nproc_per_node auto train.py", None),
    ("torchrun --nproc_per_node '{nproc_per_node}' -m trainer", AS_PLANNED),
    ("/opt/venv/bin/torchrun --nproc_per_node=2 train.py", 2),
    ("python -m torch.distributed.run --nproc_per_node=2 train.py", 2),
    ("python3.11 -u -X faulthandler -m torch.distributed.launch --use_env --nproc_per_node 2 train.py", 2),
    ("accelerate launch --multi_gpu --num_processes 4 train.py", 4),
    ("accelerate launch --num_machines 2 --num_processes=8 --mixed_precision bf16 train.py", 4),
    ("accelerate launch --num_machines 3 --num_processes=8 train.py", None),
    ("accelerate launch --config_file two.yaml train.py --num_processes 9", None),
    ("accelerate launch --a_new_flag train.py --num_processes 9", None),
    ("accelerate launch --num_processes={nproc_per_node} train.py", AS_PLANNED),
    ("accelerate-launch --num_processes 2 train.py", 2),
    ("deepspeed train.py --deepspeed zero.json", PER_GPU),
    ("deepspeed --num_gpus=2 train.py", 2),
    ("deepspeed --include localhost:0,3,5 train.py", 3),
    ("deepspeed --include worker-0@worker-1:0,1 train.py", None),
    ("deepspeed --hostfile hosts --num_gpus 8 train.py", None),
    ("mpirun --allow-run-as-root -np 4 -x PATH --mca btl tcp,self python train.py", 4),
    ("mpirun --bind-to none python train.py", None),
    ("mpirun -H a:4,b:4 -np 8 python train.py", None),
    ("mpiexec -n 8 -ppn 2 python train.py", 2),
    ("mpirun -np 2 python a.py : -np 2 python b.py", None),
    ("env OMP_NUM_THREADS=1 nice -n 5 torchrun --nproc_per_node 2 train.py", 2),
    ("timeout -k 60 2h torchrun --nproc_per_node 2 train.py", 2),
    ("uv run --frozen accelerate launch --num_processes 2 train.py", 2),
    ("conda run -n deepspeed --no-capture-output torchrun --nproc_per_node 2 train.py", 2),
    ("sh -ec 'pip install . && exec torchrun --nproc_per_node 2 train.py'", 2),
    ("bash -lc 'sh -c \"torchrun --nproc_per_node 2 train.py\"'", 2),
]

OTHERS = [
    "python train.py",
    "python train.py --launcher torchrun --strategy deepspeed",
    "python -m trainer --nproc_per_node 8 torchrun",
    "python -c 'import deepspeed'",
    "echo torchrun --nproc_per_node 8",
    "accelerate config default",
    "accelerate",
    "conda run -n deepspeed python train.py",
    "pip install deepspeed",
    "bash torchrun.sh --nproc_per_node 8",
    "sh -c 'python train.py # torchrun --nproc_per_node 8'",
    "sh -c",
    "env",
    "which mpirun",
]

SCRIPTS: list[tuple[str, Count]] = [
    ("cd /w\nNCCL_DEBUG=INFO torchrun \\\n  --nproc_per_node 2 \\\n  train.py\n", 2),
    ("torchrun --nproc_per_node $GPUS train.py", None),
    ("torchrun --nproc_per_node $(nvidia-smi -L | wc -l) train.py", None),
    ("torchrun --nproc_per_node '{nproc_per_node}' train.py", None),  # a script has no tokens
    ("torchrun --nproc_per_node 2 train.py 2>&1 | tee log", 2),
    ("torchrun --nproc_per_node 2 train.py\ntorchrun --nproc_per_node 4 test.py", 4),
    ("torchrun --nproc_per_node 2 train.py\naccelerate launch test.py", None),
    ("torchrun --nproc_per_node 2 train.py &\nwait", 2),
    ("torchrun --nproc_per_node 2 a.py &\ntorchrun --nproc_per_node 2 b.py &\nwait", None),
    ("if [ -e x ]; then torchrun --nproc_per_node 2 a.py; fi", 2),
    ("exec >log torchrun --nproc_per_node 2 a.py", 2),
]


@pytest.mark.parametrize(("line", "count"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_a_call_in_argv_says_how_many_ranks_it_starts(line: str, count: Count) -> None:
    """The options before the script count, not the script's own; without a number it is the program's usual one."""
    found = starter_of(shlex.split(line), None, {})
    assert found is not None
    assert found.count == count


@pytest.mark.parametrize("line", OTHERS)
def test_the_name_of_such_a_program_is_no_call(line: str) -> None:
    """It stands behind a program that takes it as its own argument, or in a comment."""
    assert starter_of(shlex.split(line), None, {}) is None


@pytest.mark.parametrize(("script", "count"), SCRIPTS, ids=[script for script, _ in SCRIPTS])
def test_a_call_in_a_script_says_how_many_ranks_it_starts(script: str, count: Count) -> None:
    """What a shell would expand is unknown; of calls one after the other the largest counts."""
    found = starter_of(None, script, {})
    assert found is not None
    assert found.count == count
    assert found.field == "script"


def test_a_here_document_holds_no_call() -> None:
    """Its lines are data of the command before it."""
    assert starter_of(None, "cat >run.sh <<EOF\ntorchrun --nproc_per_node 8 a.py\nEOF\npython train.py\n", {}) is None


def test_torchruns_variable_counts_where_its_options_say_nothing() -> None:
    """torchrun reads PET_NPROC_PER_NODE as the default of its option."""
    env = {"PET_NPROC_PER_NODE": "4"}
    found = [starter_of(["torchrun", *options, "a.py"], None, env) for options in ([], ["--nproc_per_node", "2"])]
    assert [each and each.count for each in found] == [4, 2]


def test_a_call_names_its_field_and_its_option() -> None:
    """A message points at the word itself, inside argv as in the text of a shell."""
    assert starter_of(["env", "A=1", "torchrun", "--nproc-per-node=2", "a.py"], None, {}) == (
        *("torchrun", "command.2", 2, "--nproc-per-node", "--nproc_per_node", True, False),
    )
    found = starter_of(["bash", "-c", "mpirun -np 2 a.py"], None, {})
    assert found is not None
    assert (found.field, found.words, found.typed(4)) == ("command.2", "mpirun -np 2", "-n 4")
