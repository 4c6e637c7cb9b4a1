"""The law of /dev/shm, against the numbers that were measured in real containers (docs/sizing.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trainlaunch.plan.launch_plan import LaunchPlan

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
    """worst_case = multi_epoch + W·M with everything in 64 KiB pages."""
    shm = plan_with(tmp_path, data_loader=loader()).shm
    assert shm.worst_case == 7 * MIB + 2 * 14 * 65536 + 2 * MIB


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
        # worst_case: 7 batches, one storage per worker, 28 pages of 64 KiB, rounded up to MiB
        (None, 512 * MIB, 4610 * MIB),
        # worst_case is over half of the limit: need and the batch that later epochs inherit, 28 pages of 4 KiB
        ("6Gi", 512 * MIB, 3585 * MIB),
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
    assert fixed.shm.multi_epoch <= GIB < fixed.shm.multi_epoch + fixed.shm.every_epoch[0].per_worker
    assert fixed.shm.loaders[0].prefetch_factor == 2


def test_the_wrappers_line_gives_the_need(tmp_path: Path) -> None:
    """need and multi_epoch are the largest of per_worker·W + besides, exactly, and without_workers for 0."""
    spec = {"batch_bytes": {"size": 3 * MIB, "tensors": 2}, "loaders": {"train": {}, "val": {"num_workers": 3}}}
    plan = plan_with(tmp_path, data_loader=spec, resources={"gpus": 1, "cpus": 5}, torchrun={"nproc_per_node": 1})
    shm, workers = plan.shm, plan.num_workers.value
    assert shm.need == max(line.per_worker * workers + line.constant for line in shm.first_epoch)
    assert shm.multi_epoch == max(line.per_worker * workers + line.constant for line in shm.every_epoch)
    none = plan_with(tmp_path, data_loader=spec, resources={"cpus": 2})
    assert none.num_workers.value == 0
    assert none.shm.need == shm.without_workers == none.shm.without_workers > 0


@pytest.mark.parametrize(("context", "batches"), [("fork", 1), ("spawn", 0), ("forkserver", 0)])
def test_later_epochs_need_one_batch_more_under_fork(tmp_path: Path, context: str, batches: int) -> None:
    """Forked workers of a later epoch inherit the batch that the loop variable still holds (measured), and 14 pages."""
    shm = plan_with(tmp_path, data_loader=loader(multiprocessing_context=context)).shm
    assert shm.multi_epoch - shm.need == batches * (MIB + 14 * PAGE)


def test_an_automatic_size_lasts_for_all_epochs(tmp_path: Path) -> None:
    """Where a batch is many storages, the reserve of one storage a worker is beside the batch of later epochs."""
    spec = {"num_workers": 1, "batch_size": 512, "collate": "list", "sample": {"shape": [65536], "dtype": "float32"}}
    shm = plan_with(tmp_path, data_loader={**spec, "batch_size": 4096}).shm
    assert shm.need + 4096 * MIB // 4 < shm.multi_epoch < shm.worst_case <= shm.size.value
    assert shm.size.derivation.startswith("upper bound: multi-epoch peak 5.0 GiB + one storage per worker")


def three_loaders(**shared: Any) -> dict[str, Any]:
    """Return three loaders of 3, 2 and 1 workers, whose batches are 1, 2 and 4 MiB."""
    loaders = {
        name: {"num_workers": workers, "batch_bytes": {"size": size * MIB, "tensors": 1}}
        for name, workers, size in (("train", 3, 1), ("val", 2, 2), ("test", 1, 4))
    }
    return {"loaders_run": "in_turn", "loaders": loaders, **shared}


# D + s of the three: 8 MiB + 17 pages, 12 MiB + 14 pages, 16 MiB + 11 pages; r·U: 1, 2 and 4 MiB.
@pytest.mark.parametrize(
    ("shared", "need", "multi_epoch", "worst_case"),
    [
        ({}, (16, 11), (16 + 7, 11 + 42), (16 + 7 + 4, 11 + 42)),
        # persistent: all semaphores stay, and workers hold what they inherited beside what the loops hold by then
        ({"persistent_workers": True}, (16, 42), (16 + 14, 11 + 42), (16 + 14 + 4, 11 + 42)),
        # nothing is inherited, but the other loops' variables still hold 1 and 2 MiB
        ({"multiprocessing_context": "spawn"}, (16, 11), (16 + 3, 11 + 42), (16 + 3 + 4, 11 + 42)),
        ({"loaders_run": "together"}, (36, 42), (36 + 7, 84), (36 + 7 + 3 + 4 + 4, 84)),
        ({"loaders_run": "together", "multiprocessing_context": "spawn"}, (36, 42), (36, 42), (36 + 11, 42)),
    ],
    ids=["fork", "persistent", "spawn", "together", "together-spawn"],
)
def test_loaders_in_turn_and_together(
    tmp_path: Path,
    shared: dict[str, Any],
    need: tuple[int, int],
    multi_epoch: tuple[int, int],
    worst_case: tuple[int, int],
) -> None:
    """In turn the largest loader counts, with what the other loops still hold; numbers are MiB and pages."""
    shm = plan_with(tmp_path, data_loader=three_loaders(**shared)).shm
    assert shm.need == need[0] * MIB + need[1] * PAGE
    assert shm.multi_epoch == multi_epoch[0] * MIB + multi_epoch[1] * PAGE
    assert shm.worst_case == worst_case[0] * MIB + worst_case[1] * 16 * PAGE


def test_a_loader_without_workers_adds_nothing_in_turn(tmp_path: Path) -> None:
    """Its batches are ordinary memory, whoever is forked while they are held."""
    spec = three_loaders()
    more = {**spec, "loaders": {**spec["loaders"], "debug": {"num_workers": 0, "batches_held": 9}}}
    with_it, without = (plan_with(tmp_path, data_loader=each).shm for each in (more, spec))
    assert with_it.need == without.need
    assert with_it.multi_epoch == without.multi_epoch
    assert with_it.worst_case == without.worst_case


def test_one_persistent_loader_keeps_its_semaphores_in_turn(tmp_path: Path) -> None:
    """Only its own stay when its loop has ended."""
    spec = three_loaders()
    spec["loaders"]["train"]["persistent_workers"] = True
    shm = plan_with(tmp_path, data_loader=spec).shm
    assert shm.need == 16 * MIB + (11 + 17) * PAGE
    assert shm.multi_epoch == (16 + 14) * MIB + (11 + 42) * PAGE


def test_a_loop_that_holds_more_leaves_more_to_later_epochs(tmp_path: Path) -> None:
    """batches_held 5: four batches of 4 MiB are inherited (measured: peak 41.25 MiB where need + U is 32.1)."""
    spec = {"num_workers": 1, "prefetch_factor": 2, "batches_held": 5, "batch_bytes": {"size": 4 * MIB, "tensors": 1}}
    shm = plan_with(tmp_path, data_loader=spec).shm
    assert shm.multi_epoch - shm.need == 4 * 4 * MIB + 11 * PAGE


def test_workers_alive_in_turn_are_those_of_the_loop_that_runs(tmp_path: Path) -> None:
    """What `status` compares running workers with, and what an unsized peak is divided by."""
    plan = plan_with(tmp_path, data_loader=three_loaders())
    assert (plan.processes, plan.queued_batches) == (3, 6)
    persistent = plan_with(tmp_path, data_loader=three_loaders(persistent_workers=True))
    assert (persistent.processes, persistent.queued_batches) == (6, 6)
    together = plan_with(tmp_path, data_loader=three_loaders(loaders_run="together"))
    assert (together.processes, together.queued_batches) == (6, 12)


def test_a_fixed_size_leaves_room_for_nccl(tmp_path: Path) -> None:
    """Two ranks of two GPUs: 2 × 128 MiB of 1 GiB are NCCL's, and the next worker would not fit."""
    spec = {"batch_bytes": {"size": 16 * MIB, "tensors": 1}}
    plan = plan_with(tmp_path, data_loader=spec, resources={"gpus": 2, "cpus": 64}, torchrun={}, shm_size="1Gi")
    left = GIB - 2 * 128 * MIB
    assert plan.shm.multi_epoch <= left < plan.shm.multi_epoch + plan.shm.every_epoch[0].per_worker


def test_workers_in_turn_are_the_largest_that_fit(tmp_path: Path) -> None:
    """Three loaders in turn fit more workers than three together, and one more of each would not fit."""
    loaders = {name: {"batch_bytes": {"size": size * MIB, "tensors": 1}} for name, size in (("a", 8), ("b", 12))}
    found = {}
    for run in ("in_turn", "together"):
        spec = {"loaders": loaders, "loaders_run": run}
        plan = plan_with(tmp_path, data_loader=spec, resources={"gpus": 1, "cpus": 64}, shm_size="256Mi")
        found[run] = plan.num_workers.value
        after = max(line.per_worker * (plan.num_workers.value + 1) + line.constant for line in plan.shm.every_epoch)
        assert plan.shm.multi_epoch <= 256 * MIB < after
    # in turn (2W + 2)·12 + 8 + 12 MiB, together (2W + 2)·20 + 20 MiB, and pages
    assert found == {"in_turn": 8, "together": 4}
