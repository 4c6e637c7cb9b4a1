"""`data_loader: none`: a job without DataLoaders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.fields.reference import json_schema
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import check_plan, plan_job
from trainlaunch.units import GIB, MIB
from trainlaunch.verify import verified

from tests.conftest import Runs
from tests.jobs import plan_under, plan_with, write_job

LOADER = {"batch_size": 64, "num_workers": 8, "sample": {"shape": [3, 224, 224], "dtype": "float32"}}


@pytest.mark.parametrize(
    ("fields", "size"),
    [
        ({}, 64 * MIB),
        ({"resources": {"memory": "32Gi"}}, 64 * MIB),
        ({"resources": {"gpus": 1}}, 64 * MIB),
        ({"resources": {"gpus": 4}}, 4 * 128 * MIB),
        ({"shm_extra": [{"name": "ray", "size": "10Gi"}]}, 10 * GIB),
        ({"resources": {"gpus": 2}, "shm_extra": [{"name": "ray", "size": "1Gi"}]}, GIB + 2 * 128 * MIB),
    ],
)
def test_shm_is_what_nccl_and_others_need_and_64_mib_at_least(tmp_path: Path, fields: Any, size: int) -> None:
    """Nothing of the loaders' law is in it, and nobody calls it unsized."""
    plan = plan_with(tmp_path, data_loader="none", **fields)
    assert plan.shm.size.value == size
    assert (plan.num_workers.value, plan.processes, plan.auto_workers, plan.shm.unsized) == (0, 0, False, False)
    assert {each.code for each in check_plan(plan)} & {"TL209", "TL204"} == set()


def test_the_main_process_has_the_threads(tmp_path: Path) -> None:
    """No CPU is kept for workers."""
    threads = dict(plan_with(tmp_path, data_loader="none", resources={"cpus": 6}).threads)
    assert threads["OMP_NUM_THREADS"].value == 6
    assert "OPENBLAS_NUM_THREADS" not in threads


@pytest.mark.parametrize("target", ["docker", "compose", "kubernetes"])
def test_every_target_says_it(tmp_path: Path, target: str) -> None:
    """The renderings are read back."""
    plan = plan_with(tmp_path, target, data_loader="none", resources={"cpus": 2, "memory": "4Gi"})
    assert verified(plan, render(plan))


@pytest.mark.parametrize("layer", ["override", "set", "policy"])
def test_the_word_replaces_the_mapping_in_every_merge(tmp_path: Path, layer: str) -> None:
    """Of all layers, and a mapping above it replaces the word."""
    job = write_job(tmp_path, data_loader=LOADER, target_overrides={"compose": {"data_loader": "none"}})
    if layer == "override":
        assert plan_job(read_job(job, target="compose")).job.data_loader.loaders == ()
        assert len(plan_job(read_job(job, target="docker")).job.data_loader.loaders) == 1
    elif layer == "set":
        assert read_job(job, sets=["data_loader=none"]).data_loader.loaders == ()
        again = read_job(job, target="compose", sets=["data_loader.num_workers=3"])
        assert [each.num_workers for each in again.data_loader.loaders] == [3]
    else:
        policy = {"defaults": {"data_loader": {"num_workers": 4}}}
        assert plan_under(tmp_path, policy, data_loader="none").job.data_loader.loaders == ()
        assert plan_under(tmp_path, {"defaults": {"data_loader": "none"}}).job.data_loader.loaders == ()


@pytest.mark.parametrize("token", ["{num_workers}", "--workers={num_workers}", "{prefetch_factor}", "n={batch_size}"])
def test_a_token_of_a_loader_is_an_error_at_its_place(tmp_path: Path, token: str) -> None:
    """It would arrive as 0 or empty; ranks and literals have a meaning."""
    with pytest.raises(JobFileRejected) as caught:
        plan_with(tmp_path, data_loader="none", command=["python", "train.py", token])
    (error,) = caught.value.diagnostics
    assert (error.code, error.field) == ("TL109", "command.2")
    assert error.span is not None
    plan_with(tmp_path, data_loader="none", command=["python", "{{num_workers}}", "{nproc_per_node}", "x{num_workers}"])


@pytest.mark.parametrize("word", ["None", "off", "no", "null"])
def test_another_word_is_not_it(tmp_path: Path, word: str) -> None:
    """What to write is said."""
    job = write_job(tmp_path)
    job.write_text(job.read_text() + f"data_loader: {word}\n")
    with pytest.raises(JobFileRejected) as caught:
        read_job(job)
    assert "none" in "".join(f"{each.message}{each.fix}" for each in caught.value.diagnostics)


def test_the_schema_knows_the_word_and_local_jobs_without_image(tmp_path: Path) -> None:
    """An editor says nothing about what `plan` takes."""
    job = {"name": "a", "command": ["a"], "target": "local", "data_loader": "none"}
    schema = jsonschema.Draft202012Validator(json_schema())
    schema.validate(job)
    for wrong in ({**job, "data_loader": "no"}, {**job, "target": "docker"}):
        assert not schema.is_valid(wrong)


def test_local_needs_no_image(tmp_path: Path, trainlaunch: Runs) -> None:
    """There is none to start; every other target names it as missing."""
    job = write_job(tmp_path, image=None, command=["true"], data_loader="none")
    done = trainlaunch("plan", str(job), "--target", "local", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["image"] is None
    assert trainlaunch("up", str(job), "--target", "local").returncode == 0
    assert trainlaunch("down", str(job), "--target", "local").returncode == 0
    for target in ("docker", "compose", "kubernetes"):
        refused = trainlaunch("plan", str(job), "--target", target)
        assert (refused.returncode, "image is missing" in refused.stderr) == (1, True)
