"""The law of /dev/shm, against the numbers that were measured in real containers (docs/sizing.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from launcher.plan.launch_plan import LaunchPlan
from tests.jobs import codes_of, plan_with

PAGE = 4096
MIB = 2**20
GIB = 2**30


def loader(**fields: Any) -> dict[str, Any]:
    """Return a data_loader of two workers that stacks one 1 MiB tensor per batch, with `fields` over it."""
    return {"num_workers": 2, "batch_size": 4, "sample": {"shape": [65536], "dtype": "float32"}, **fields}


@pytest.mark.parametrize(
    ("fields", "pages"),
    [
        # measured: /dev/shm of exactly this passes, one page less fails
        ({"batch_bytes": {"size": 4194304, "tensors": 1}}, 6158),
        (
            {"batch_size": 1, "sample": {"shape": [1000000], "dtype": "uint8"}, "num_workers": 3, "prefetch_factor": 1},
            1242,
        ),
        (
            {
                "batch_size": 1,
                "prefetch_factor": 4,
                "sample": [{"shape": [300000], "dtype": "uint8"}] * 3,
            },
            2234,
        ),
        ({"batch_bytes": {"size": 1048576, "tensors": 1}, "sharing_strategy": "file_system"}, 1556),
        # page rounding is per tensor: 64 tensors of 200 bytes are 64 pages
        ({"batch_size": 1, "sample": [{"shape": [200], "dtype": "uint8"}] * 64}, 6 * 64 + 14),
        ({"batch_size": 64, "collate": "list", "sample": {"shape": [4098], "dtype": "uint8"}}, 6 * 128 + 14),
        ({"collate": "none"}, 14),
        ({"num_workers": 0}, 0),
        ({"sample": {"shape": [], "dtype": "int64"}}, 6 + 14),
        # an epoch of validation inside one of training: the full sum
        (
            {
                "batch_bytes": {"size": 4 * MIB, "tensors": 1},
                "loaders": {"train": {}, "val": {"batch_bytes": {"size": 8 * MIB, "tensors": 1}}},
            },
            18460,
        ),
        # the dataset yields batches: the sample is the batch
        ({"batch_size": None, "sample": {"shape": [1024], "dtype": "float32"}}, 6 + 14),
    ],
)
def test_need_is_the_measured_law(tmp_path: Path, fields: dict[str, Any], pages: int) -> None:
    """Need counts pages of distinct storages, prefetched and held batches, and semaphores."""
    merged = loader(**fields)
    if "batch_bytes" in merged:
        merged.pop("sample")
    assert plan_with(tmp_path, data_loader=merged).shm.need == pages * PAGE


def test_ranks_multiply_and_extras_add(tmp_path: Path) -> None:
    """Each rank has its own loaders; Ray's or a checkpoint's files come on top once."""
    one = plan_with(tmp_path, data_loader=loader())
    two = plan_with(
        tmp_path, data_loader=loader(), torchrun={"nproc_per_node": 2}, shm_extra=[{"name": "ray", "size": "1Gi"}]
    )
    assert two.ranks.value == 2
    assert two.shm.need == 2 * one.shm.need + GIB


@pytest.mark.parametrize(("context", "extra"), [("fork", 0), ("spawn", 64 * MIB), ("forkserver", 64 * MIB)])
def test_tensors_of_the_dataset_count_where_they_are_pickled(tmp_path: Path, context: str, extra: int) -> None:
    """Spawn and forkserver move every tensor of the dataset into /dev/shm; fork does not."""
    spec = loader(multiprocessing_context=context)
    without = plan_with(tmp_path, data_loader=spec)
    tensors = plan_with(tmp_path, data_loader={**spec, "dataset_tensor_bytes": "64Mi"})
    assert tensors.shm.need - without.shm.need == extra


def test_hard_adds_one_storage_per_worker_and_large_pages(tmp_path: Path) -> None:
    """worst_case = (W·P + 2)·U + (3W + 8)·64 KiB + W·M with everything in 64 KiB pages."""
    shm = plan_with(tmp_path, data_loader=loader()).shm
    assert shm.worst_case == 6 * MIB + 14 * 65536 + 2 * MIB


@pytest.mark.parametrize(("gpus", "extra"), [(0, 0), (1, 0), (2, 2 * 128 * MIB), (8, 8 * 128 * MIB)])
def test_nccl_counts_only_between_gpus(tmp_path: Path, gpus: int, extra: int) -> None:
    """One rank talks to nobody and gloo uses no /dev/shm."""
    shm = plan_with(tmp_path, data_loader=loader(num_workers=0), resources={"gpus": gpus}, torchrun={}).shm
    assert shm.worst_case == extra
    assert shm.need == 0


@pytest.mark.parametrize(
    ("memory", "size", "expected"),
    [
        (None, 1 * MIB, 2 * GIB),  # the floor
        ("1Gi", 1 * MIB, 512 * MIB),  # the floor under a small limit is half of it
        ("96Mi", 1 * MIB, 64 * MIB),  # never below what Docker gives anyway
        (None, 512 * MIB, 4097 * MIB),  # worst_case: 6 batches, one per worker, 14 pages of 64 KiB, rounded up to MiB
        (
            "6Gi",
            512 * MIB,
            3585 * MIB,
        ),  # worst_case is over half of the limit: need and the batch that later epochs inherit
    ],
)
def test_automatic_size(tmp_path: Path, memory: str | None, size: int, expected: int) -> None:
    """max(worst_case, floor) in MiB; where worst_case is over half of the memory, what several epochs need."""
    spec = {"num_workers": 2, "batch_bytes": {"size": size, "tensors": 1}}
    plan = plan_with(tmp_path, data_loader=spec, resources={"memory": memory} if memory else {})
    assert plan.shm.size.value == expected


@pytest.mark.parametrize(("memory", "expected"), [(None, 8 * GIB), ("10Gi", 5 * GIB), ("100Mi", 64 * MIB)])
def test_without_a_sample_the_size_is_a_cap(tmp_path: Path, memory: str | None, expected: int) -> None:
    """No sample: half of the memory limit, or 8 GiB without one, and the plan says `unsized`."""
    plan = plan_with(tmp_path, resources={"memory": memory} if memory else {})
    assert plan.shm.unsized
    assert plan.shm.size.value == expected == plan.shm.minimum
    assert "TL209" in codes_of(plan)


def test_no_workers_by_the_users_word_is_not_unsized(tmp_path: Path) -> None:
    """num_workers 0 puts nothing in /dev/shm, sample or not."""
    plan = plan_with(tmp_path, data_loader={"num_workers": 0})
    assert not plan.shm.unsized
    assert (plan.shm.need, plan.shm.size.value) == (0, 2 * GIB)


def test_workers_are_the_largest_that_fit_a_fixed_size(tmp_path: Path) -> None:
    """With shm_size stated, an automatic W shrinks to what fits; prefetch is untouched."""
    spec = {"batch_bytes": {"size": 64 * MIB, "tensors": 1}}
    resources = {"gpus": 1, "cpus": 16}
    fixed: LaunchPlan = plan_with(tmp_path, data_loader=spec, resources=resources, shm_size="1Gi")
    assert fixed.num_workers.value == 6
    assert fixed.shm.need <= GIB < fixed.shm.need + fixed.shm.per_worker
    assert fixed.shm.loaders[0].prefetch_factor == 2


def test_the_wrappers_line_gives_the_need(tmp_path: Path) -> None:
    """need = per_worker·W + fixed, exactly, and without_workers for 0."""
    spec = {"batch_bytes": {"size": 3 * MIB, "tensors": 2}, "loaders": {"train": {}, "val": {"num_workers": 3}}}
    plan = plan_with(tmp_path, data_loader=spec, resources={"gpus": 1, "cpus": 5}, torchrun={"nproc_per_node": 1})
    shm = plan.shm
    assert shm.need == shm.per_worker * plan.num_workers.value + shm.fixed
    none = plan_with(tmp_path, data_loader=spec, resources={"cpus": 2})
    assert none.num_workers.value == 0
    assert none.shm.need == shm.without_workers == none.shm.without_workers > 0


@pytest.mark.parametrize(("context", "batches"), [("fork", 1), ("spawn", 0), ("forkserver", 0)])
def test_later_epochs_need_one_batch_more_under_fork(tmp_path: Path, context: str, batches: int) -> None:
    """Forked workers of a later epoch inherit the batch that the loop variable still holds (measured)."""
    shm = plan_with(tmp_path, data_loader=loader(multiprocessing_context=context)).shm
    assert shm.multi_epoch - shm.need == batches * MIB


def test_an_automatic_size_lasts_for_all_epochs(tmp_path: Path) -> None:
    """Where a batch is many storages, the reserve of one storage per worker is less than the batch of later epochs."""
    spec = {"num_workers": 1, "batch_size": 512, "collate": "list", "sample": {"shape": [65536], "dtype": "float32"}}
    shm = plan_with(tmp_path, data_loader={**spec, "batch_size": 4096}).shm
    assert shm.worst_case < shm.multi_epoch <= shm.size.value
    assert "later epochs" in shm.size.derivation
