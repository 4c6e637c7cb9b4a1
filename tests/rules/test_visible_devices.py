"""Variables that choose among GPUs, in a job: wrong in a container that hasn't got them, right on a host."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.rules import check_plan

from tests.jobs import plan_with

CLUSTER = {"cpus": 4, "memory": "16Gi"}


def told(folder: Path, env: dict[str, str], gpus: object, target: str = "docker", **more: object) -> list[str]:
    """Return the fields of the findings."""
    resources = {**CLUSTER, "gpus": gpus, **({"gpu_vendor": more.pop("vendor")} if "vendor" in more else {})}
    plan = plan_with(folder, target, env=env, resources=resources, ranks_per_container=1, **more)
    return [str(each.field) for each in check_plan(plan) if each.code == "TL351"]


@pytest.mark.parametrize(
    "name", ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"]
)
@pytest.mark.parametrize(("value", "gpus", "found"), [
    ("2", 1, True), ("0, 1", 1, True), ("1", 0, True), ("2", [2], True),
    ("0", 1, False), ("0,1", 2, False), ("", 1, False), ("-1", 0, False), ("0", [5], False), ("7", "all", False),
])  # fmt: skip
def test_numbers_are_those_inside(tmp_path: Path, name: str, value: str, gpus: object, found: bool) -> None:
    """A container counts its GPUs from 0, whichever of the host's they are; one without has none."""
    for target in ("docker", "compose"):
        assert told(tmp_path, {name: value}, gpus, target) == [f"env.{name}"] * found
    assert told(tmp_path, {name: value}, gpus, "local") == []


def test_on_a_cluster_the_device_plugin_chooses(tmp_path: Path) -> None:
    """A number there hides or shows what the plugin decides."""
    assert told(tmp_path, {"CUDA_VISIBLE_DEVICES": "1"}, 1, "kubernetes") == ["env.CUDA_VISIBLE_DEVICES"]
    assert told(tmp_path, {"NVIDIA_VISIBLE_DEVICES": "0"}, 1, "kubernetes") == ["env.NVIDIA_VISIBLE_DEVICES"]
    assert told(tmp_path, {"NVIDIA_VISIBLE_DEVICES": "all"}, 1, "kubernetes") == ["env.NVIDIA_VISIBLE_DEVICES"]


@pytest.mark.parametrize(("value", "gpus", "found"), [
    ("3", 1, True), ("0,1", [0], True), ("none", 1, True),
    ("0", 1, False), ("2,3", [3, 2], False), ("all", "all", False), ("none", 0, False),
])  # fmt: skip
def test_the_runtimes_own_variable_counts_the_hosts(tmp_path: Path, value: str, gpus: object, found: bool) -> None:
    """It must not say another GPU than the request does."""
    assert told(tmp_path, {"NVIDIA_VISIBLE_DEVICES": value}, gpus) == ["env.NVIDIA_VISIBLE_DEVICES"] * found


def test_ids_are_compared_with_ids(tmp_path: Path) -> None:
    """A shortened one is fine; where the job gives numbers nobody can tell here."""
    assert told(tmp_path, {"CUDA_VISIBLE_DEVICES": "GPU-bbbb"}, ["GPU-aaaa"]) == ["env.CUDA_VISIBLE_DEVICES"]
    assert told(tmp_path, {"CUDA_VISIBLE_DEVICES": "GPU-aa"}, ["GPU-aaaa"]) == []
    assert told(tmp_path, {"CUDA_VISIBLE_DEVICES": "GPU-bbbb"}, [0]) == []
