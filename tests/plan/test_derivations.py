"""The sum behind a number names all that it counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.plan.shm_sum_text import multi_epoch_derivation, need_derivation

from tests.jobs import plan_with

SAMPLE = {"batch_size": 64, "sample": {"shape": [3, 224, 224], "dtype": "float32"}}


def test_dataset_tensors_and_other_owners_stand_in_the_sum(tmp_path: Path) -> None:
    """Three fifths of this need is neither a batch nor a semaphore."""
    loader = {**SAMPLE, "num_workers": 2, "multiprocessing_context": "spawn", "dataset_tensor_bytes": "3Gi"}
    plan = plan_with(tmp_path, ranks_per_container=2, data_loader=loader, shm_extra=[{"name": "ray", "size": "2Gi"}])
    text = need_derivation(plan.job, plan.shm, plan.ranks.value)
    assert text.startswith("2 ranks × [train: (2 workers·2 + 2 in use)·37 MiB")
    assert text.endswith("; tensors of the dataset 3.0 GiB] + ray 2.0 GiB")


def test_dataset_tensors_under_fork_are_not_in_the_sum(tmp_path: Path) -> None:
    """A forked worker shares the dataset's memory as it is."""
    plan = plan_with(tmp_path, data_loader={**SAMPLE, "num_workers": 2, "dataset_tensor_bytes": "3Gi"})
    assert "dataset" not in need_derivation(plan.job, plan.shm, plan.ranks.value)


def test_nccl_is_named_where_ranks_share_one_gpu(tmp_path: Path) -> None:
    """NCCL's part follows from ranks, not from the number of GPUs, and so does its name in the sum."""
    loader = {**SAMPLE, "num_workers": 32}
    for ranks, named in ((1, False), (2, True)):
        plan = plan_with(tmp_path, ranks_per_container=ranks, resources={"gpus": 1}, data_loader=loader)
        assert plan.shm.size.derivation.startswith("upper bound:")
        assert ("NCCL" in plan.shm.size.derivation) is named


def test_a_small_size_without_workers_is_below_need(tmp_path: Path) -> None:
    """A CPU-only job on two CPUs has no workers, so it is not a worker that doesn't fit."""
    owners = [{"name": "ray", "size": "1Gi"}]
    with pytest.raises(
        JobFileRejected, match=r"TL202: shm_size 64Mi is below the one-epoch peak of the DataLoaders, 1024 MiB"
    ):
        plan_with(tmp_path, resources={"cpus": 2}, shm_size="64Mi", shm_extra=owners)


def test_more_bytes_than_any_engine_counts_are_an_error(tmp_path: Path) -> None:
    """Docker takes 2⁶³ bytes and more for a negative number, and a Kubernetes quantity wraps around."""
    sample = {"shape": [10**9, 10**9], "dtype": "int64"}
    with pytest.raises(JobFileRejected, match="TL203: the job's one-epoch peak"):
        plan_with(tmp_path, data_loader={"batch_size": 1, "sample": sample, "num_workers": 1})


def test_sums_of_loaders_in_turn_say_which_number_counts(tmp_path: Path) -> None:
    """In turn need is that of one loader, and multi_epoch what the other loops still hold beside it."""
    loaders = {"train": {"num_workers": 2}, "val": {"num_workers": 1}, "test": {"num_workers": 0}}
    texts = {}
    for context in ("fork", "spawn"):
        spec = {**SAMPLE, "loaders": loaders, "loaders_run": "in_turn", "multiprocessing_context": context}
        plan = plan_with(tmp_path, data_loader=spec)
        texts[context] = multi_epoch_derivation(plan.job, plan.shm, plan.ranks.value)
        assert need_derivation(plan.job, plan.shm, plan.ranks.value) == (
            "the largest of [train: (2 workers·2 + 2 in use)·37 MiB + 14 pages; "
            "val: (1 worker·2 + 2 in use)·37 MiB + 11 pages]"
        )
    kept = "[train: 1·37 MiB; val: 1·37 MiB]"
    assert texts == {
        "fork": f"(the largest loader + {kept} that loops still use and workers inherit + 25 pages)"
        " + all else of the one-epoch peak",
        "spawn": f"(the largest loader + what the other loops still use of {kept} + 25 pages)"
        " + all else of the one-epoch peak",
    }
