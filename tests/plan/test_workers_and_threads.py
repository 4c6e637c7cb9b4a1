"""Workers, ranks and threads follow the container's CPUs, and a stated value is never changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trainlaunch.units import MIB

from tests.jobs import plan_with


@pytest.mark.parametrize(
    ("resources", "fields", "expected"),
    [
        ({"gpus": 1, "cpus": 8}, {}, 8),
        ({"gpus": 1, "cpus": 32}, {}, 16),
        ({"gpus": 8, "cpus": 4}, {}, 1),
        ({"gpus": 2, "cpus": 9}, {}, 4),
        ({"gpus": 1}, {}, 16),
        ({"gpus": 1, "cpus": 8}, {"max_workers": 3}, 3),
        ({"gpus": 1, "cpus": 0.5}, {}, 1),
        ({"gpus": 1, "cpus": "7500m"}, {}, 7),
        ({"cpus": 1}, {}, 0),
        ({"cpus": 3}, {}, 0),
        ({"cpus": 4}, {}, 1),
        ({"cpus": 64}, {}, 8),
        ({"cpus": 64}, {"max_workers": 2}, 2),
        ({}, {}, 16),
        ({"cpus": 1}, {"num_workers": 4}, 4),
    ],
)
def test_number_of_workers(tmp_path: Path, resources: dict[str, Any], fields: dict[str, Any], expected: int) -> None:
    """GPU jobs take the CPUs per rank, CPU-only jobs a quarter of them from 4 CPUs on; max_workers bounds both."""
    plan = plan_with(tmp_path, resources=resources, data_loader={"collate": "none", **fields})
    assert plan.num_workers.value == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, 1),
        ({"resources": {"gpus": 4}}, 4),
        ({"resources": {"gpus": [2, 3]}}, 2),
        ({"torchrun": {"nproc_per_node": 2}}, 2),
        ({"torchrun": {}, "resources": {"gpus": 8}}, 8),
        ({"torchrun": {"nproc_per_node": 2}, "resources": {"gpus": 4}}, 2),
        ({"ranks_per_container": 3}, 3),
        ({"resources": {"gpus": "all"}, "ranks_per_container": 8}, 8),
    ],
)
def test_number_of_ranks(tmp_path: Path, fields: dict[str, Any], expected: int) -> None:
    """ranks_per_container, else torchrun's, else one per GPU, else one."""
    assert plan_with(tmp_path, **fields).ranks.value == expected


@pytest.mark.parametrize(
    ("resources", "workers", "expected"),
    [
        ({"gpus": 1, "cpus": 32}, None, {"OMP_NUM_THREADS": 4, "OPENBLAS_NUM_THREADS": 1}),
        ({"gpus": 1, "cpus": 8}, None, {"OMP_NUM_THREADS": 2, "TORCHINDUCTOR_COMPILE_THREADS": 8}),
        ({"gpus": 8, "cpus": 8}, None, {"MKL_NUM_THREADS": 1, "TORCHINDUCTOR_COMPILE_THREADS": 1}),
        ({"cpus": 2}, None, {"OMP_NUM_THREADS": 2, "OPENBLAS_NUM_THREADS": None}),
        ({"cpus": 8}, None, {"OMP_NUM_THREADS": 6, "OPENCV_FOR_THREADS_NUM": 1}),
        ({"cpus": 2}, 4, {"OMP_NUM_THREADS": 1, "RAYON_NUM_THREADS": 1}),
        ({}, None, {"OMP_NUM_THREADS": None}),
    ],
)
def test_threads(
    tmp_path: Path, resources: dict[str, Any], workers: int | None, expected: dict[str, int | None]
) -> None:
    """Ranks and workers share the CPUs; without resources.cpus the preflight decides."""
    spec = {"collate": "none"} | ({} if workers is None else {"num_workers": workers})
    threads = dict(plan_with(tmp_path, resources=resources, data_loader=spec).threads)
    assert {name: threads[name].value if name in threads else None for name in expected} == expected


def test_the_jobs_own_thread_setting_wins(tmp_path: Path) -> None:
    """A variable in env is shown as stated, with its line."""
    plan = plan_with(tmp_path, resources={"cpus": 8}, env={"OMP_NUM_THREADS": "3"})
    omp = dict(plan.threads)["OMP_NUM_THREADS"]
    assert (omp.value, omp.derivation) == (3, "set")
    assert omp.origin.endswith("job.yaml:9") or "job.yaml:" in omp.origin


def test_torchrun_stands_in_front_of_the_same_command(tmp_path: Path) -> None:
    """Adding the block scales the command as it is."""
    argv = plan_with(tmp_path, torchrun={"nproc_per_node": 2, "max_restarts": 1}).argv
    assert argv[0] == "torchrun"
    assert argv[-3:] == ("--no-python", "python", "train.py")
    assert {"--nproc-per-node=2", "--max-restarts=1", "--nnodes=1"} < set(argv)


def test_several_nodes_have_one_argv(tmp_path: Path) -> None:
    """Where they meet is no argument: it is the same on every node and target."""
    argv = plan_with(tmp_path, "compose", torchrun={"nnodes": 3, "rdzv_port": 4000}).argv
    assert argv[:2] == ("torchrun", "--nnodes=3")
    assert not [each for each in argv if "endpoint" in each or "4000" in each]


@pytest.mark.parametrize("ranks", [1, 2])
def test_nccl_between_nodes_has_its_share_of_each_node(tmp_path: Path, ranks: int) -> None:
    """40 MiB a rank beside what one node needs, and the plan says so; gloo takes none."""
    fields: dict[str, Any] = {
        "resources": {"memory": "64Gi", "cpus": 8, "gpus": ranks},
        "shm_extra": [{"name": "cache", "size": "4Gi"}],
        "data_loader": {"sample": {"shape": [8], "dtype": "float32"}, "batch_size": 1},
    }
    one, two = (plan_with(tmp_path, "compose", torchrun={"nnodes": nodes}, **fields) for nodes in (1, 2))
    assert two.shm.worst_case - one.shm.worst_case == ranks * 40 * MIB
    assert two.shm.need == one.shm.need
    assert two.shm.size.derivation.endswith("+ NCCL")
    fields |= {"resources": {"memory": "64Gi"}, "ranks_per_container": ranks}
    one, two = (plan_with(tmp_path, "compose", torchrun={"nnodes": nodes}, **fields) for nodes in (1, 2))
    assert one.shm == two.shm
