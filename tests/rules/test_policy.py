"""A policy's ceilings and demands: errors with both numbers and places."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.committed.lock_writer import ImageFacts, lock_text
from trainlaunch.errors import JobFileRejected
from trainlaunch.policy.registry import in_registry, parts_of
from trainlaunch.rules import check_plan
from trainlaunch.units import MIB

from tests.jobs import plan_under

SAMPLE = {"shape": [3, 224, 224], "dtype": "float32"}
DIGEST = "sha256:" + "5a" * 32


def refusals(folder: Path, policy: dict[str, Any], *sets: str, **how: Any) -> list[str]:
    """Return code and message of each error, without folders."""
    with pytest.raises(JobFileRejected) as caught:
        plan_under(folder, policy, *sets, **how)
    return [f"{each.code} {each.message}".replace(f"{folder}/", "") for each in caught.value.diagnostics]


CASES = [
    ({"memory": "8Gi"}, {"resources": {"memory": "9Gi"}}, "resources.memory 9Gi is above the policy's max.memory 8Gi"),
    ({"memory": "8Gi"}, {}, "resources.memory is not set, and the policy's max.memory is 8Gi"),
    ({"shm_size": "1Gi"}, {"shm_size": "2Gi"}, "shm_size 2Gi is above the policy's max.shm_size 1Gi"),
    ({"gpus": 2}, {"resources": {"gpus": 3}}, "resources.gpus 3 is above the policy's max.gpus 2"),
    ({"gpus": 1}, {"resources": {"gpus": ["0", "1"]}}, "resources.gpus 2 is above the policy's max.gpus 1"),
    ({"gpus": 0}, {"resources": {"gpus": 1}}, "resources.gpus 1 is above the policy's max.gpus 0"),
    (
        {"gpus": 8},
        {"resources": {"gpus": "all"}, "ranks_per_container": 1},
        "resources.gpus is all, and the policy's max.gpus is 8",
    ),
    ({"total_gpus": 2}, {"resources": {"gpus": 3}}, "resources.gpus 3 is above the policy's max.total_gpus 2"),
    (
        {"num_workers": 4},
        {"data_loader": {"num_workers": 5}},
        "data_loader.num_workers 5 is above the policy's max.num_workers 4",
    ),
    (
        {"num_workers": 4},
        {"data_loader": {"num_workers": 1, "loaders": {"a": {}, "b": {"num_workers": 6}}}},
        "data_loader.loaders.b.num_workers 6 is above the policy's max.num_workers 4",
    ),
]


@pytest.mark.parametrize(("ceilings", "fields", "message"), CASES, ids=[each[2] for each in CASES])
def test_a_value_above_a_ceiling_is_an_error(
    tmp_path: Path, ceilings: dict[str, Any], fields: dict[str, Any], message: str
) -> None:
    """Both numbers and the policy's line stand in it; the fix clears it."""
    (found,) = refusals(tmp_path, {"max": ceilings}, **fields)
    assert found == f"TL140 {message} (trainlaunch-policy.yaml:2)"


@pytest.mark.parametrize("how", ["--set", "target_overrides", "policy"])
def test_nothing_passes_a_ceiling(tmp_path: Path, how: str) -> None:
    """Not --set, not an override, not the policy's own default; the place is that of the value."""
    fields: dict[str, Any] = {"resources": {"memory": "1Gi"}}
    policy: dict[str, Any] = {"max": {"memory": "2Gi"}}
    sets = ["resources.memory=3Gi"] if how == "--set" else []
    if how == "target_overrides":
        fields["target_overrides"] = {"docker": {"resources": {"memory": "3Gi"}}}
    if how == "policy":
        fields, policy = {}, {**policy, "defaults": {"resources": {"memory": "3Gi"}}}
    (found,) = refusals(tmp_path, policy, *sets, **fields)
    stated = "resources.memory 3Gi (--set)" if how == "--set" else "resources.memory 3Gi"
    assert found == f"TL140 {stated} is above the policy's max.memory 2Gi (trainlaunch-policy.yaml:2)"


def test_a_value_at_its_ceiling_is_fine(tmp_path: Path) -> None:
    """A ceiling is the highest value that may be asked for."""
    ceilings = {"memory": "8Gi", "shm_size": "1Gi", "gpus": 2, "total_gpus": 2, "num_workers": 4}
    fields = {"resources": {"memory": "8Gi", "gpus": 2}, "shm_size": "1Gi", "data_loader": {"num_workers": 4}}
    assert plan_under(tmp_path, {"max": ceilings}, **fields).gpus.count == 2


def test_gpus_of_another_name_are_gpus(tmp_path: Path) -> None:
    """Devices in resources.extended count, and network cards don't."""
    extended = {"nvidia.com/mig-1g.10gb": 3, "rdma/hca": 8, "nvidia.com/hostdev": 8}
    fields = {"resources": {"cpus": 4, "memory": "8Gi", "extended": extended}}
    (found,) = refusals(tmp_path, {"max": {"gpus": 2}}, target="kubernetes", **fields)
    assert found.startswith("TL140 resources.extended.nvidia.com/mig-1g.10gb 3 is above the policy's max.gpus 2")


@pytest.mark.parametrize("workers", [{}, {"num_workers": 8}])
def test_a_need_above_the_ceiling_is_an_error(tmp_path: Path, workers: dict[str, int]) -> None:
    """The need of stated workers, or of one worker."""
    loader = {"batch_size": 512, "sample": SAMPLE, **workers}
    found = refusals(tmp_path, {"max": {"shm_size": "64Mi"}}, resources={"cpus": 16, "gpus": 1}, data_loader=loader)
    (message,) = found
    assert re.fullmatch(
        r"TL140 the job needs \S+ MiB of /dev/shm, and the policy's max\.shm_size is 64Mi \(.*:2\)", message
    )


def test_a_ceiling_that_holds_one_epoch_only_is_a_warning(tmp_path: Path) -> None:
    """Stated workers whose later epochs would inherit one batch too many."""
    loader = {"batch_bytes": {"size": "50Mi", "tensors": 1}, "num_workers": 1}
    need = plan_under(tmp_path, {}, data_loader=loader).shm
    ceiling = -(-need.need // MIB)
    assert need.need <= ceiling * MIB < need.multi_epoch
    plan = plan_under(tmp_path, {"max": {"shm_size": f"{ceiling}Mi"}}, data_loader=loader)
    (finding,) = [each for each in check_plan(plan) if each.code == "TL210"]
    assert finding.fix == "lower data_loader.num_workers (now 1) or batch_size"


LABELS: list[tuple[Any, dict[str, str], str]] = [
    (["team"], {}, "the label team is missing, and the policy asks for a label of that name"),
    (["team"], {"team": ""}, "the label team is empty, and the policy asks for a label of that name"),
    ({"team": "[a-z]+"}, {"team": "Vision"}, "the label team is 'Vision', and the policy asks for a value like [a-z]+"),
    ({"team": "[a-z]+"}, {"team": "vision-2"}, "the label team is 'vision-2', and the policy asks for a value like"),
]


@pytest.mark.parametrize(("asked", "labels", "message"), LABELS, ids=[each[2] for each in LABELS])
def test_a_required_label_is_asked_for(tmp_path: Path, asked: Any, labels: dict[str, str], message: str) -> None:
    """A pattern is one of the whole value."""
    (found,) = refusals(tmp_path, {"required_labels": asked}, labels=labels)
    assert found.startswith(f"TL141 {message}")
    assert plan_under(tmp_path, {"required_labels": asked}, labels={"team": "vision"})
    assert plan_under(tmp_path, {"required_labels": asked, "defaults": {"labels": {"team": "ml"}}})


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("trainer", "docker.io/library/trainer"),
        ("trainer:1", "docker.io/library/trainer"),
        ("ml/trainer:1", "docker.io/ml/trainer"),
        ("docker.io/trainer:1", "docker.io/library/trainer"),
        ("index.docker.io/ml/trainer", "docker.io/ml/trainer"),
        ("localhost/trainer:1", "localhost/trainer"),
        ("registry:5000/a/b:1", "registry:5000/a/b"),
        ("Registry.Example.com/a", "registry.example.com/a"),
        ("registry.example.com/a/b@sha256:" + "0" * 64, "registry.example.com/a/b"),
        ("registry.example.com:443/a:1@sha256:" + "0" * 64, "registry.example.com:443/a"),
    ],
)
def test_an_image_is_read_as_docker_reads_it(image: str, parts: str) -> None:
    """The first part is a registry where it has a dot or a port, or is localhost; else it is docker.io's."""
    assert "/".join(parts_of(image)) == parts


@pytest.mark.parametrize(
    ("image", "allowed", "inside"),
    [
        ("trainer:1", "docker.io", True),
        ("trainer:1", "docker.io/library", True),
        ("trainer:1", "docker.io/library/trainer", True),
        ("trainer:1", "docker.io/library/train", False),
        ("pytorch/pytorch:2", "docker.io/pytorch", True),
        ("pytorch-evil/x:2", "docker.io/pytorch", False),
        ("docker.io.evil.com/library/x", "docker.io", False),
        ("registry.example.com/team-b/x", "registry.example.com/team", False),
        ("registry.example.com/team/x/y", "registry.example.com/team", True),
        ("registry.example.com:5000/team/x", "registry.example.com", False),
        ("registry:5000/x", "registry:5000", True),
    ],
)
def test_a_registry_allows_whole_parts(image: str, allowed: str, inside: bool) -> None:
    """Never a start of a name: another's registry may begin with the same letters."""
    assert in_registry(image, allowed) is inside


def test_an_image_from_elsewhere_is_an_error(tmp_path: Path) -> None:
    """On each target that starts it; target local starts none."""
    policy = {"allowed_registries": ["docker.io/pytorch", "registry.example.com"]}
    (found,) = refusals(tmp_path, policy, image="ml/trainer:1")
    assert found == (
        "TL142 image ml/trainer:1 comes from docker.io/ml/trainer, and the policy allows docker.io/pytorch, "
        "registry.example.com (trainlaunch-policy.yaml:2)"
    )
    (by_set,) = refusals(tmp_path, policy, "image=x:1", image="pytorch/pytorch:2.9.1")
    assert by_set.startswith("TL142 image x:1 (--set) comes from")
    assert plan_under(tmp_path, policy, image="registry.example.com/a:1")
    assert plan_under(tmp_path, policy, target="local", image="ml/trainer:1")


def test_a_digest_is_required_and_the_lock_gives_it(tmp_path: Path) -> None:
    """In the image or in the lock; --set of a tag passes neither."""
    policy = {"require_digest": True}
    (found,) = refusals(tmp_path, policy)
    assert found == (
        "TL143 image trainer:1 is not pinned, and the policy requires a digest (trainlaunch-policy.yaml:1)"
    )
    assert plan_under(tmp_path, policy, image=f"trainer:1@{DIGEST}")
    (tmp_path / "job.lock.yaml").write_text(
        lock_text(tmp_path / "job.yaml", {"trainer:1": ImageFacts(DIGEST, ())}), encoding="utf-8"
    )
    assert plan_under(tmp_path, policy)
    (by_set,) = refusals(tmp_path, policy, "image=other:1")
    assert by_set.startswith("TL143 image other:1 (--set) is not pinned")
    assert plan_under(tmp_path, {"require_digest": False}, "image=other:1")


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    """A job that is new to a policy is corrected in one go."""
    policy = {
        "max": {"memory": "8Gi", "gpus": 1},
        "required_labels": ["team", "project"],
        "allowed_registries": ["docker.io/pytorch"],
        "require_digest": True,
    }
    found = refusals(tmp_path, policy, resources={"memory": "9Gi", "gpus": 2})
    assert [each[:5] for each in found] == ["TL140", "TL140", "TL141", "TL141", "TL142", "TL143"]
