"""No ceiling and no list of a policy has a back door: what a job or its patch takes by another way is refused too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import JobFileRejected
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.repository.root import Reach
from trainlaunch.rules import plan_job
from trainlaunch.verify import verified

from tests.jobs import write_job
from tests.policy.doors import (
    DOORS,
    GPUS,
    MEMORY,
    POD,
    PRIVILEGED,
    TRAIN,
    Door,
    added,
    compose,
    flags,
    own,
    side,
)
from tests.policy.neighbours import NEIGHBOURS
from tests.repository.git import repository as git_repository
from tests.sampling import every

# Refused with and without a policy: what nobody could judge, or would be another job than the plan's.
SHUT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("compose", side(extends={"file": "x.yaml", "service": "other"})),
    ("compose", compose(include=["x.yaml"])),
    ("compose", compose(models={"m": {"model": "x"}})),
    ("compose", side(env_file=["./x.env"])),
    ("compose", side(label_file=["./x.env"])),
    ("compose", side(provider={"type": "x"})),
    ("compose", side(use_api_socket=True)),
    ("compose", side(volumes=["/etc:/in"])),
    ("compose", side(environment=["NVIDIA_VISIBLE_DEVICES=all"])),
    ("compose", side(mem_limit=0)),
    ("compose", side(cpus=64)),
    ("compose", own(deploy={"resources": {"limits": {"memory": "64g"}}})),
    ("compose", own(deploy={"replicas": 500})),
    ("compose", own(scale=500)),
    ("compose", own(cpu_quota=-1)),
    ("compose", own(tmpfs=["/dev/shm:size=9g"])),
    ("docker", flags("-m=64g")),
    ("docker", flags("-m64g")),
    ("docker", flags("--cpu-quota", "-1")),
    ("docker", flags("--gpus=all")),
    ("docker", flags("--vol", "/etc:/in")),
    ("docker", flags("-Pv", "/etc:/in")),
    ("docker", flags("--volumes-from=other")),
    ("docker", flags("--env-file", "x.env")),
    ("docker", flags("--tmpfs", "/dev/shm:size=9g")),
    ("kubernetes", added((f"{POD}/ephemeralContainers", [{"name": "e", "image": "a"}]))),
    ("kubernetes", added((f"{POD}/resources", {"limits": {"memory": "64Gi"}}))),
    ("kubernetes", added((f"{POD}/serviceAccount", "admin"))),
    ("kubernetes", added((f"{POD}/hostIPC", True))),
    ("kubernetes", added((f"{TRAIN}/resources/limits/hugepages-1Gi", "64Gi"))),
    ("kubernetes", added((f"{TRAIN}/resources/requests/cpu", "64"))),
    ("kubernetes", added(("/spec/parallelism", 9))),
    ("kubernetes", added(("/spec/volumeClaimTemplates", []))),
    ("kubernetes", added(("/spec/replicatedJobs/0/template/spec/parallelism", 9), kubernetes={"kind": "jobset"})),
    ("kubernetes", added(("/spec/elasticPolicy", {"maxReplicas": 9}), kubernetes={"kind": "pytorchjob"})),
    ("kubernetes", added(("/spec/pytorchReplicaSpecs/Master/replicas", 9), kubernetes={"kind": "pytorchjob"})),
    ("kubernetes", added(("/spec/trainer", {"numNodes": 9}), kubernetes={"kind": "trainjob"})),
    ("kubernetes", added(("/spec/podSpecOverrides", [{"volumes": []}]), kubernetes={"kind": "trainjob"})),
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with a job's code, beside a folder that isn't its own."""
    folder = tmp_path_factory.mktemp("doors")
    made = git_repository(folder / "repository", jobs__train_py="pass\n")
    (folder / "outside").mkdir()
    (folder / "outside" / "train.py").write_text("pass\n")
    return made


def refused(repository: Path, door: Door, policy: str) -> tuple[Diagnostic, ...]:
    """Return what is wrong with a job in a repository under a policy, whose first line is a comment."""
    (repository / "trainlaunch-policy.yaml").write_text(f"# what holds for all jobs\n{policy}\n")
    fields = {"resources": {"cpus": 4, "memory": "4Gi"}, "shm_size": "64Mi", **door.fields}
    try:
        file, outside = write_job(repository / "jobs", **fields), repository.parent / "outside"
        plan = plan_job(read_job(file, target=door.target, reach=Reach(allowed=(outside,))))
        verified(plan, render(plan))
    except JobFileRejected as rejected:
        return rejected.diagnostics
    return ()


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_no_limit_has_a_back_door(repository: Path, door: Door) -> None:
    """Refused at its place in the job, with the policy's line and what both say."""
    found = refused(repository, door, door.policy)
    told = [each for each in found if "trainlaunch-policy.yaml:2" in each.message]
    assert told, [each.message for each in found]
    assert {each.code for each in told} <= {"TL140", "TL146", "TL152"}
    assert all(each.span is not None and each.fix for each in told)
    whole = " ".join(f"{each.message} {each.fix}" for each in told)
    assert all(part in whole for part in door.said), whole


@pytest.mark.parametrize("door", every(5, DOORS), ids=lambda door: door.name)
def test_without_its_line_of_the_policy_a_door_is_open(repository: Path, door: Door) -> None:
    """It is that line which refuses, and nothing else."""
    assert bool(refused(repository, door, PRIVILEGED)) is not door.is_free


@pytest.mark.parametrize(("target", "fields"), SHUT, ids=lambda each: str(each)[:70])
def test_what_nobody_can_judge_is_refused(repository: Path, target: str, fields: dict[str, Any]) -> None:
    """These would pass every ceiling and list: another file's services, a second process, more pods than planned."""
    found = refused(repository, Door("", "", target, fields), PRIVILEGED)
    assert {each.code for each in found if each.severity.value == "error"} & {"TL145", "TL146"}


def test_a_nearer_policy_opens_no_name_that_another_one_bounds(tmp_path: Path) -> None:
    """Each file with a ceiling of GPUs has a list of its own, which is empty where it states none."""
    door = next(each for each in DOORS if each.name == "vgpu")
    nearer = f"{GPUS}\nallowed_extended: [volcano.sh/vgpu-number]\n"
    made = git_repository(tmp_path, jobs__policy_yaml=nearer)
    (made / "jobs" / "policy.yaml").rename(made / "jobs" / "trainlaunch-policy.yaml")
    (found,) = refused(made, door, GPUS)
    assert f"allows none ({tmp_path}/trainlaunch-policy.yaml:2)" in found.message
    assert refused(made, door, MEMORY) == ()


@pytest.mark.parametrize("neighbour", NEIGHBOURS, ids=lambda door: door.name)
def test_what_only_looks_like_a_door_passes(repository: Path, neighbour: Door) -> None:
    """A policy that refused these would be switched off."""
    found = refused(repository, neighbour, neighbour.policy)
    assert [each.message for each in found if each.severity.value == "error"] == []
