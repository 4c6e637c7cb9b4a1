"""`init --from` gives the plan of each of our own renderings back: rendered again, it says the same."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.init.takeover import take_over
from trainlaunch.kinds import KINDS
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.verify.expected_workload import parse_rendering

from tests.jobs import write_job
from tests.runners import ROOT
from tests.sampling import diagonals

EXAMPLES = sorted(ROOT.glob("examples/*/*.yaml"))
WRITTEN_FOR_TESTS = [*sorted(ROOT.glob("tests/job/valid/*.yaml")), *sorted(ROOT.glob("tests/render/jobs/*.yaml"))]
# What a kind can't do is left out of the job that has every field.
_WITHOUT = {
    "pod": ("restart.on_exit_codes=null", "kubernetes.queue=null"),
    "trainjob": ("restart.on_exit_codes=null",),
    "pytorchjob": ("restart.on_exit_codes=null", "restart.max_attempts=null"),
}
_HASH = re.compile(r"-[0-9a-f]{8}(?![0-9a-f])")
_TOLD = re.compile(r'# Rendered by .*|# options: .*\n|# --shm-size is .*|(?<=m") # .*|(?<=Mi") # .*')


def planned(job: Path, target: str, kind: str = "") -> LaunchPlan:
    """Return the plan of a job for a target. Raises JobFileRejected for one that the target does not take."""
    sets = [f"kubernetes.kind={kind}", *_WITHOUT.get(kind, ())] if kind else []
    return plan_job(read_job(job, target=target, sets=sets))


def takes(job: Path, target: str, kind: str) -> bool:
    """Return whether a target takes a job."""
    try:
        planned(job, target, kind)
    except JobFileRejected:
        return False
    return True


TARGETS = [("docker", ""), ("compose", ""), *(("kubernetes", kind) for kind in KINDS)]
FULL = ROOT / "tests/job/valid/every_field.yaml"
JOBS = (*EXAMPLES, *WRITTEN_FOR_TESTS)


def given_back(plan: LaunchPlan, folder: Path) -> tuple[LaunchPlan, list[str]]:
    """Return the plan of the job that is made of a plan's rendering, and what is said of it."""
    name = plan.target_record.file_name.format(name=plan.job.name)
    taken = take_over(render(plan).encode(), str(folder / name), pick=None, folder=folder)
    (folder / "taken.yaml").write_text(taken.text)
    job = read_job(folder / "taken.yaml", target=plan.target)
    return plan_job(job._replace(path=plan.job.path)), [each.message for each in taken.notes]


def said(plan: LaunchPlan) -> dict[str, Any]:
    """Return what a plan's rendering says; the hash of a name is of fields that no manifest shows, too."""
    found = parse_rendering(plan, render(plan), base=None)
    return {key: _unhashed(value) for key, value in found.items()}


def _unhashed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unhashed(each) for key, each in value.items()}
    return _HASH.sub("-HASH", value) if isinstance(value, str) and len(value) < 200 else value


def not_given_back(pairs: Iterable[tuple[Path, tuple[str, str]]], folder: Path) -> list[tuple[str, str, str]]:
    """Return the jobs whose renderings don't say the same once they were taken over."""
    wrong = []
    for job, (target, kind) in pairs:
        if (job.stem, target) == ("code", "kubernetes") or not takes(job, target, kind):
            continue
        plan = planned(job, target, kind)
        again, lost = given_back(plan, folder)
        if lost or said(again) != said(plan):
            wrong.append((str(job), target, kind))
    return wrong


def test_a_rendering_gives_its_plan_back(tmp_path: Path) -> None:
    """Every value that a rendering says, the preflight's numbers and text included, and nothing is reported lost."""
    assert not_given_back([*product([FULL], TARGETS), *diagonals(3, JOBS, TARGETS)], tmp_path) == []


@pytest.mark.long
def test_a_rendering_of_every_kind_gives_its_plan_back(tmp_path: Path) -> None:
    """The whole product."""
    assert not_given_back(product(JOBS, TARGETS), tmp_path) == []


def test_every_kind_and_target_has_the_job_with_every_field() -> None:
    """Nothing is green because nothing ran."""
    assert [each for each in TARGETS if not takes(FULL, *each)] == []


@pytest.mark.parametrize(("target", "kind"), TARGETS, ids=[" ".join(each).strip() for each in TARGETS])
def test_its_text_is_given_back_but_for_the_comments(target: str, kind: str, tmp_path: Path) -> None:
    """The bytes are the same: the header and what explains the size are comments."""
    plan = planned(ROOT / "tests/render/jobs/script.yaml", target, kind)
    again, _ = given_back(plan, tmp_path)
    texts = [_HASH.sub("-HASH", _TOLD.sub("", render(each))) for each in (again, plan)]
    assert texts[0] == texts[1]


def test_what_a_pod_learns_of_itself_is_no_secret_of_the_job(tmp_path: Path) -> None:
    """Its address on a node's network, and how often it was started again."""
    sets = ["kubernetes.host_network=true", "kubernetes.pod_security=privileged", "torchrun.nnodes=2"]
    resumes = ["restart.max_attempts=3", "checkpoint_dir=/saved", "mounts.0={type: pvc, source: s, target: /saved}"]
    job = ROOT / "tests/render/jobs/minimal.yaml"
    for more in (sets, [*resumes, "kubernetes.kind=jobset"]):
        plan = plan_job(read_job(job, target="kubernetes", sets=more))
        assert "fieldRef" in render(plan)
        again, lost = given_back(plan, tmp_path)
        assert (said(again), lost) == (said(plan), [])


def test_code_in_a_manifest_is_named_and_not_invented(tmp_path: Path) -> None:
    """A ConfigMap has the files; the folder that they came from is not in the text."""
    _, lost = given_back(planned(ROOT / "tests/render/jobs/code.yaml", "kubernetes"), tmp_path)
    assert lost == ["the folder of files at /workspace was not converted"]


def test_a_changed_number_is_not_passed_off_as_the_plan(tmp_path: Path) -> None:
    """A need that no DataLoaders give is owned by something else, and the job says so in a field."""
    plan = planned(ROOT / "examples/quickstart/job.yaml", "docker")
    text = render(plan).replace(" need=180224", " need=184320")
    taken = take_over(text.encode(), str(tmp_path / "run.sh"), pick=None, folder=tmp_path)
    (tmp_path / "job.yaml").write_text(taken.text)
    assert plan_job(read_job(tmp_path / "job.yaml")).shm.need == 184320


def test_what_no_loaders_explain_is_said(tmp_path: Path) -> None:
    """Open files that fit to no batch: the job plans all the same, and a warning names the number."""
    plan = planned(ROOT / "examples/quickstart/job.yaml", "docker")
    text = re.sub(r" files=\d+", " files=9000001", render(plan))
    taken = take_over(text.encode(), str(tmp_path / "run.sh"), pick=None, folder=tmp_path)
    assert [each.message for each in taken.notes] == ["a part of the plan (files) was not converted"]


def test_secrets_come_back_by_their_sources_and_no_value_is_asked_for(tmp_path: Path) -> None:
    """Variables, files, and those that the job sees as the other one."""
    plan = planned(ROOT / "tests/render/jobs/secrets.yaml", "docker")
    again, _ = given_back(plan, tmp_path)
    wanted, found = (
        {name: (each.env, each.file and posixpath.normpath(each.file), each.as_file) for name, each in secrets.items()}
        for secrets in (plan.job.secrets, again.job.secrets)
    )
    assert found == wanted


def test_the_file_of_a_secret_is_named_from_where_the_job_will_lie(tmp_path: Path) -> None:
    """As a mount's folder is; the rendering lies in another one."""
    text = render(planned(ROOT / "tests/render/jobs/secrets.yaml", "docker")).encode()
    taken = take_over(text, str(tmp_path / "deploy/run.sh"), pick=None, folder=tmp_path)
    assert "file: ./deploy/keys/s3" in taken.text


def test_a_patched_rendering_keeps_its_patch(tmp_path: Path) -> None:
    """Flags after ours are the job's patch again."""
    job = tmp_path / "job.yaml"
    job.write_text(
        "name: patched\nimage: trainer:1\ncommand: [python, train.py]\n"
        "patches: {docker: {extra_args: [--cap-add, SYS_PTRACE, --network=host]}}\n"
    )
    plan = plan_job(read_job(job))
    again, lost = given_back(plan, tmp_path)
    assert lost == []
    assert said(again)["rest"] == said(plan)["rest"]


@pytest.mark.parametrize("target", ["docker", "compose", "kubernetes"])
def test_what_runs_inside_the_job_is_given_back(tmp_path: Path, target: str) -> None:
    """The heartbeat, the stop, and the loaders that get workers, each with its batch_size."""
    loader = {"batch_size": 8, "sample": {"shape": [3], "dtype": "float32"}, "inject": "num_workers"}
    job = write_job(
        tmp_path / "job",
        resources={"cpus": 8, "memory": "4Gi"},
        data_loader={**loader, "loaders": {"train": {}, "val": {"batch_size": 4}}},
        healthcheck={"stall_after": "10m", "on_unhealthy": "stop"},
        observe=True,
    )
    plan = planned(job, target)
    again, lost = given_back(plan, tmp_path)
    assert (again.inside, again.job.healthcheck) == (plan.inside, plan.job.healthcheck)
    assert said(again) == said(plan)
    assert lost == []
