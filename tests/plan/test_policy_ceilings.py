"""What trainlaunch chooses itself is capped by the policy's ceilings, and says so."""

from __future__ import annotations

from pathlib import Path

from trainlaunch.units import MIB

from tests.jobs import plan_under

SAMPLE = {"shape": [3, 224, 224], "dtype": "float32"}


def test_automatic_workers_are_capped_and_say_so(tmp_path: Path) -> None:
    """Fewer workers, fewer batches in flight; a number below the ceiling keeps its own derivation."""
    fields = {"resources": {"cpus": 32, "gpus": 1}, "data_loader": {"batch_size": 8, "sample": SAMPLE}}
    capped = plan_under(tmp_path, {"max": {"num_workers": 3}}, **fields).num_workers
    assert capped.value == 3
    assert capped.derivation.startswith("limited by the policy's max.num_workers; 16 = min(max_workers 16")
    assert capped.origin == f"{tmp_path / 'trainlaunch-policy.yaml'}:2 (policy)"
    assert plan_under(tmp_path, {"max": {"num_workers": 16}}, **fields).num_workers.derivation.startswith("min(")
    assert plan_under(tmp_path, {"max": {"num_workers": 0}}, **fields).num_workers.value == 0


def test_an_automatic_size_is_capped_and_says_so(tmp_path: Path) -> None:
    """Stated workers keep their number while their need fits; without a sample the cap is the ceiling."""
    sized = {"data_loader": {"batch_size": 8, "sample": SAMPLE, "num_workers": 2}}
    plan = plan_under(tmp_path, {"max": {"shm_size": "256Mi"}}, **sized)
    assert plan.shm.size.value == 256 * MIB
    assert plan.shm.size.derivation.startswith("limited by the policy's max.shm_size; 2Gi = minimum size")
    assert plan.shm.size.origin.endswith("trainlaunch-policy.yaml:2 (policy)")
    unsized = plan_under(tmp_path, {"max": {"shm_size": "1Gi"}}, resources={"memory": "8Gi"})
    assert (unsized.shm.unsized, unsized.shm.size.value) == (True, 1024 * MIB)


def test_automatic_workers_are_as_many_as_fit_under_the_ceiling(tmp_path: Path) -> None:
    """As with a stated shm_size: in every epoch, not only in the first; the next one wouldn't fit."""
    fields = {"resources": {"cpus": 16, "gpus": 1}, "data_loader": {"batch_size": 64, "sample": SAMPLE}}
    plan = plan_under(tmp_path, {"max": {"shm_size": "512Mi"}}, **fields)
    assert 0 < plan.num_workers.value < 16
    assert plan.num_workers.derivation == "largest that fits the policy's max.shm_size 512Mi; the CPUs allow 16"
    assert plan.shm.multi_epoch <= plan.shm.size.value == 512 * MIB
    assert plan.shm.multi_epoch + plan.shm.every_epoch[0].per_worker > 512 * MIB


def test_a_ceiling_that_caps_nothing_changes_no_number(tmp_path: Path) -> None:
    """The same plan with and without a policy that it satisfies."""
    fields = {"resources": {"cpus": 8, "memory": "32Gi"}, "data_loader": {"batch_size": 64, "sample": SAMPLE}}
    without = plan_under(tmp_path, {}, **fields)
    within = plan_under(tmp_path, {"max": {"memory": "1Ti", "shm_size": "1Ti", "num_workers": 4096}}, **fields)
    assert (within.shm, within.num_workers, within.threads) == (without.shm, without.num_workers, without.threads)
