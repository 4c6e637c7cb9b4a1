"""What a lock's measurements fill in, what the job states instead, and when they are of another job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.cli.arguments.measuring import keep_probe, keep_tune
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.job.loader_spec import ProbedLoader, ProbeMeasurement, Tune
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.lock_overrides import input_of, start_method_derivation
from trainlaunch.plan.shm_sum_text import need_derivation
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import check_plan, plan_job
from trainlaunch.units import GIB, MIB
from trainlaunch.verify import verified

from tests.conftest import Runs
from tests.job.test_lock import write_lock
from tests.jobs import write_job

FIELDS: dict[str, Any] = {"resources": {"cpus": 2, "memory": "16Gi"}, "data_loader": {"num_workers": 2}}
TRAIN = ProbedLoader("train.py:48", 2, 2, (3 * MIB, 512), False, None, None, None)


def probed(folder: Path, *loaders: ProbedLoader, target: str = "docker", changes: Any = None, **fields: Any) -> Path:
    """Write a job of FIELDS and `fields` and the probe of it, with `changes` of the probe; return the job file."""
    job_file = write_job(folder, **{**FIELDS, **fields})
    keep_probe(job_file, probe_of_job(job_file, *loaders, target=target, **(changes or {})))
    return job_file


def probe_of_job(job_file: Path, *loaders: ProbedLoader, target: str = "docker", **changes: Any) -> ProbeMeasurement:
    """Return the probe of a job as it is now."""
    job = read_job(job_file, target=target)
    known = ProbeMeasurement(input_of(job), target, "2.9.1", "3.11.7", "fork", "together", 20, loaders or (TRAIN,), 0)
    return known._replace(**changes)


def planned(job_file: Path, target: str | None = None, sets: tuple[str, ...] = ()) -> LaunchPlan:
    """Return the plan of a job file."""
    return plan_job(read_job(job_file, target=target, sets=sets))


def said(plan: LaunchPlan, code: str) -> list[Diagnostic]:
    """Return what is said with one code."""
    return [each for each in check_plan(plan) if each.code == code]


def test_a_fresh_probe_sizes_the_job_to_the_page(tmp_path: Path) -> None:
    """U is 3 MiB and a page: (2·2 + 2)·U and 14 pages. Where it came from is the lock's line."""
    plan = planned(probed(tmp_path))
    assert plan.shm.unsized is False
    assert plan.shm.need == 6 * (3 * MIB + 4096) + 14 * 4096
    origin = str(plan.job.origin("data_loader.loaders.train.storages"))
    assert origin == f"{tmp_path}/job.lock.yaml:13 (lock)"
    assert said(plan, "TL209") == []


def test_another_target_uses_the_probe_of_the_one_that_ran(tmp_path: Path) -> None:
    """What was measured on docker is planned on kubernetes too, with that target's own numbers."""
    job_file = probed(tmp_path, target_overrides={"kubernetes": {"resources": {"cpus": 4}}})
    assert planned(job_file, "kubernetes").shm.need == planned(job_file, "docker").shm.need


@pytest.mark.parametrize(
    "change",
    [
        {"image": "trainer:2"},
        {"command": ["python", "other.py"]},
        {"command": None, "script": "python train.py"},
        {"data_loader": {"num_workers": 3}},
        {"data_loader": {"num_workers": 2, "pin_memory": True}},
        {"ranks_per_container": 2},
        {"torchrun": {"nproc_per_node": 1}},
    ],
)
def test_a_probe_of_another_job_is_ignored_with_the_command_to_type(tmp_path: Path, change: dict[str, Any]) -> None:
    """As if it weren't there, but for one warning at its place."""
    job_file = probed(tmp_path)
    write_job(tmp_path, **{**FIELDS, **change})
    plan = planned(job_file)
    assert plan.shm == plan_job(read_job(job_file, use_lock=False)).shm
    (found,) = said(plan, "TL726")
    assert f"`trainlaunch probe {job_file} --target docker --write`" in found.fix
    assert found.span is not None
    assert found.span.file.endswith("job.lock.yaml")


@pytest.mark.parametrize(
    "change",
    [
        {"name": "renamed"},
        {"env": {"A": "1"}},
        {"shm_size": "4Gi"},
        {"resources": {"cpus": 8, "memory": "32Gi"}},
        {"mounts": [{"type": "tmpfs", "target": "/x"}]},
    ],
)
def test_what_a_batch_does_not_follow_from_leaves_a_probe_fresh(tmp_path: Path, change: dict[str, Any]) -> None:
    """Near-misses: other fields, and the same value in another style."""
    job_file = probed(tmp_path)
    write_job(tmp_path, **{**FIELDS, **change})
    assert said(planned(job_file), "TL726") == []
    assert planned(job_file).shm.unsized is False


def test_pinning_the_image_afterwards_leaves_a_probe_fresh(tmp_path: Path) -> None:
    """`lock` after `probe`: the image's name is the same."""
    job_file = probed(tmp_path)
    lock = tmp_path / "job.lock.yaml"
    lock.write_text(f"{lock.read_text()}images:\n  'trainer:1': {{digest: 'sha256:{'5a' * 32}', entrypoint: []}}\n")
    assert "@sha256" in planned(job_file).job.image
    assert said(planned(job_file), "TL726") == []


def test_a_probe_on_a_target_for_which_the_file_is_no_job_any_more_is_stale(tmp_path: Path) -> None:
    """It can't be compared, so it isn't used; the job itself plans."""
    job_file = probed(tmp_path)
    write_job(tmp_path, **FIELDS, torchrun={"nnodes": 2})
    (found,) = said(planned(job_file, "compose"), "TL726")
    assert "has errors for target docker" in found.message


def test_a_stated_value_wins_and_a_larger_measured_one_is_a_warning_with_both(tmp_path: Path) -> None:
    """The plan is for what the job file says, batch, workers and held ones alike."""
    stated = {"num_workers": 1, "batches_held": 1, "batch_bytes": {"size": "1Mi", "tensors": 1}}
    job_file = probed(tmp_path, data_loader=stated)
    plan = planned(job_file)
    assert plan.shm.need == 3 * MIB + 11 * 4096
    messages = [each.message for each in said(plan, "TL727")]
    assert messages == [
        "a batch of train took 3.0 MiB at train.py:48, and batch_bytes gives 1.0 MiB",
        "train had num_workers 2 at train.py:48, and the job file sets 1",
        "train had batches_held 2 at train.py:48, and the job file sets 1",
    ]
    assert said(plan, "TL727")[0].field == "data_loader.batch_bytes"


def test_what_is_as_large_as_stated_is_no_warning(tmp_path: Path) -> None:
    """Near-misses: equal, and smaller."""
    stated = {"num_workers": 4, "batches_held": 2, "batch_bytes": {"size": 3 * MIB + 512, "tensors": 2}}
    assert said(planned(probed(tmp_path, data_loader=stated)), "TL727") == []


def test_tensors_where_the_job_says_none_are_a_warning(tmp_path: Path) -> None:
    """`collate: none` is a statement of zero bytes."""
    plan = planned(probed(tmp_path, data_loader={"num_workers": 2, "collate": "none"}))
    assert plan.shm.need == 14 * 4096
    (found,) = said(plan, "TL727")
    assert "collate gives 0 bytes" in found.message


def test_loaders_together_and_larger_datasets_than_stated_are_warnings(tmp_path: Path) -> None:
    """What all loaders share."""
    data_loader = {
        "num_workers": 2,
        "loaders_run": "in_turn",
        "dataset_tensor_bytes": "4Ki",
        "loaders": {"a": {}, "b": {}},
    }
    job_file = probed(tmp_path, TRAIN, TRAIN, data_loader=data_loader, changes={"dataset_tensor_bytes": 8192})
    assert [each.field for each in said(planned(job_file), "TL727")] == [
        "data_loader.loaders_run",
        "data_loader.dataset_tensor_bytes",
    ]
    assert said(planned(job_file), "TL727")[1].fix == "set dataset_tensor_bytes to 8Ki"


def test_what_the_script_states_itself_is_planned_where_the_job_leaves_it_open(tmp_path: Path) -> None:
    """A script with num_workers=4 of its own runs 4, whatever the CPUs would allow."""
    own = TRAIN._replace(num_workers=4, batches_held=3, own_workers=4, own_prefetch=3, own_persistent=True)
    changes = {"start_method": "spawn", "dataset_tensor_bytes": 4096, "loaders_run": "in_turn"}
    plan = planned(probed(tmp_path, own, data_loader={}, changes=changes))
    assert plan.num_workers.value == 4
    assert plan.auto_workers is False
    assert plan.shm.need == 15 * (3 * MIB + 4096) + 20 * 4096 + 4096
    assert plan.job.data_loader.multiprocessing_context == "spawn"
    assert plan.shm.in_turn


def test_workers_that_follow_the_plan_stay_automatic(tmp_path: Path) -> None:
    """The script took the plan's number, so on more CPUs it takes more."""
    job_file = probed(tmp_path, data_loader={}, resources={"cpus": 8, "memory": "16Gi"})
    assert planned(job_file).auto_workers
    assert planned(job_file, sets=("resources.cpus=16",)).num_workers.value == 4


def test_batches_of_several_sizes_get_half_as_much_again_and_no_larger_need(tmp_path: Path) -> None:
    """A cap costs nothing: only the automatic size grows, within half of the memory limit."""
    large = TRAIN._replace(storages=(400 * MIB,))
    alike, varying = (planned(probed(tmp_path, each)).shm for each in (large, large._replace(varying=True)))
    assert (alike.need, alike.multi_epoch, alike.worst_case) == (varying.need, varying.multi_epoch, varying.worst_case)
    assert varying.size.value == pytest.approx(1.5 * alike.size.value, abs=2 * MIB)
    assert "batches vary" in varying.size.derivation
    tight = planned(probed(tmp_path, large._replace(varying=True), resources={"cpus": 2, "memory": "8Gi"})).shm
    assert tight.size.value == 4 * GIB
    tighter = planned(probed(tmp_path, large._replace(varying=True), resources={"cpus": 2, "memory": "5Gi"})).shm
    assert tighter.size.value == pytest.approx(tighter.multi_epoch, abs=MIB)
    stated = planned(probed(tmp_path, large._replace(varying=True), shm_size="3Gi")).shm
    assert stated.size.value == 3 * GIB


def test_the_floor_stays(tmp_path: Path) -> None:
    """Batches of a page don't make /dev/shm smaller than two GiB."""
    assert planned(probed(tmp_path, TRAIN._replace(storages=(512,), varying=True))).shm.size.value == 2 * GIB


@pytest.mark.parametrize("inject", ["num_workers", "env"])
def test_a_loader_that_a_probe_found_something_against_is_injected_no_workers(tmp_path: Path, inject: str) -> None:
    """Its neighbour gets them; where nothing is injected nothing is said."""
    bad = TRAIN._replace(against_workers=("handle-in-init", "repeated-epochs"))
    spec = {"inject": inject, "loaders": {"train": {}, "val": {}}}
    plan = planned(probed(tmp_path, bad, TRAIN, data_loader=spec))
    settings = dict(plan.inside.settings)
    if inject == "env":
        assert (settings, said(plan, "TL730")) == ({}, [])
        return
    train, val = json.loads(settings["TRAINLAUNCH_WORKERS"])
    assert (train["num_workers"], train["why"]) == (0, "probe found handle-in-init, repeated-epochs")
    assert val == {"batch_size": None, "num_workers": None}
    (found,) = said(plan, "TL730")
    assert found.message.startswith("train is given no workers: at train.py:48 probe found handle-in-init, repeated-")
    assert found.fix.endswith(f"`trainlaunch probe {tmp_path}/job.yaml --target docker --write`")


def test_a_stale_probe_keeps_no_workers_from_a_loader(tmp_path: Path) -> None:
    """It was of another script; a warning says so."""
    job_file = probed(
        tmp_path, TRAIN._replace(against_workers=("handle-in-init",)), data_loader={"inject": "num_workers"}
    )
    plan = planned(job_file, sets=("image=other:1",))
    assert json.loads(dict(plan.inside.settings)["TRAINLAUNCH_WORKERS"]) == [{"batch_size": None, "num_workers": None}]
    assert (len(said(plan, "TL726")), said(plan, "TL730")) == (1, [])


def test_a_probe_of_another_number_of_loaders_is_not_used(tmp_path: Path) -> None:
    """Edited by hand: which is which can't be told."""
    plan = planned(probed(tmp_path, TRAIN, TRAIN))
    assert plan.shm.unsized
    assert len(said(plan, "TL726")) == 1


def test_the_start_method_is_the_images_pythons_where_nothing_else_tells_it(tmp_path: Path) -> None:
    """forkserver from 3.14 on, which puts the dataset's tensors into /dev/shm; what is stated or was probed wins."""
    loader = {**FIELDS["data_loader"], "batch_bytes": {"size": "1Mi", "tensors": 1}, "dataset_tensor_bytes": "60Mi"}
    job_file = write_job(tmp_path, **{**FIELDS, "data_loader": loader})
    found: dict[str, str] = {}
    texts: dict[str, set[str]] = {}
    for python in ("", "3.9.2", "3.13.1", "3.14.0", "4.0.0"):
        write_lock(job_file, python=python)
        plan = planned(job_file)
        found[python] = plan.job.data_loader.multiprocessing_context
        tensors = 60 * MIB if found[python] == "forkserver" else 0
        assert plan.shm.need == 6 * MIB + 14 * 4096 + tensors
        assert ("assumed fork" in need_derivation(plan.job, plan.shm, 1)) == (not python)
        texts[found[python]] = texts.get(found[python], set()) | {render(plan)}
    assert found == {"": "fork", "3.9.2": "fork", "3.13.1": "fork", "3.14.0": "forkserver", "4.0.0": "forkserver"}
    assert [len(each) for each in texts.values()] == [1, 1]  # a lock that tells it changes no byte but for sizes
    assert start_method_derivation(plan.job) == "the default of the image's Python 4.0.0"
    spawned = planned(job_file, sets=("data_loader.multiprocessing_context=spawn",))
    assert start_method_derivation(spawned.job) == "set"
    assert planned(job_file, "local").job.data_loader.multiprocessing_context == "fork"
    keep_probe(job_file, probe_of_job(job_file, start_method="spawn"))
    seen = planned(job_file)
    assert seen.job.data_loader.multiprocessing_context == "spawn"
    assert start_method_derivation(seen.job) == "as `trainlaunch probe` saw it"


def test_a_tune_gives_automatic_workers_and_prefetch(tmp_path: Path) -> None:
    """Still automatic: the preflight lowers them where the machine has less."""
    job_file = write_job(tmp_path, **{**FIELDS, "data_loader": {"batch_bytes": {"size": "1Mi", "tensors": 1}}})
    keep_tune(job_file, "docker", Tune(input_of(read_job(job_file)), 2000, 3, 4))
    plan = planned(job_file)
    assert (plan.num_workers.value, plan.auto_workers, plan.shm.loaders[0].prefetch_factor) == (3, True, 4)
    assert "tune" in plan.num_workers.derivation
    assert str(plan.num_workers.origin) == f"{tmp_path}/job.lock.yaml:6 (lock)"
    assert planned(job_file, "compose").num_workers.value == 0
    fewer = planned(job_file, sets=("resources.cpus=1",))
    assert fewer.num_workers.value == 0
    (found,) = said(fewer, "TL729")
    assert "resources.cpus 2, and the job has 1" in found.message
    other = planned(job_file, sets=("image=other:1",))
    assert [each.code for each in check_plan(other) if each.code == "TL729"] == ["TL729"]


def test_a_tune_gives_threads_other_than_the_plan_has(tmp_path: Path) -> None:
    """As variables, in the rendering too, with the lock's line as their origin; stated ones, or workers, win."""
    loader = {"batch_bytes": {"size": "1Mi", "tensors": 1}}
    job_file = write_job(tmp_path, **{**FIELDS, "data_loader": loader})
    keep_tune(job_file, "docker", Tune(input_of(read_job(job_file)), 2000, 0, 2, 1))
    plan = planned(job_file)
    threads = dict(plan.threads)["OMP_NUM_THREADS"]
    assert (threads.value, threads.derivation) == (1, "the fastest that `trainlaunch tune` found")
    assert str(threads.origin) == f"{tmp_path}/job.lock.yaml:6 (lock)"
    assert "OMP_NUM_THREADS=1" in verified(plan, render(plan))
    stated = planned(job_file, sets=("env.OMP_NUM_THREADS=2",))
    assert [dict(stated.threads)[name].value for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")] == [2, 1]
    assert "OMP_NUM_THREADS" not in planned(job_file, sets=("data_loader.inject=off",)).job.env
    assert "OMP_NUM_THREADS" not in planned(job_file, "compose").job.env


def test_a_stated_number_of_workers_wins_over_tune(tmp_path: Path) -> None:
    """And so does a stated prefetch_factor."""
    stated = {"num_workers": 1, "prefetch_factor": 3, "batch_bytes": {"size": "1Mi", "tensors": 1}}
    job_file = write_job(tmp_path, **{**FIELDS, "data_loader": stated})
    keep_tune(job_file, "docker", Tune(input_of(read_job(job_file)), 2000, 3, 4, 1))
    plan = planned(job_file)
    assert (plan.num_workers.value, plan.shm.loaders[0].prefetch_factor) == (1, 3)
    assert "OMP_NUM_THREADS" not in plan.job.env


def test_what_tune_says_to_write_and_to_delete_leaves_its_result_in_force(tmp_path: Path) -> None:
    """As for a constant of the script, which the job file stated; another batch is another job."""
    batch = {"batch_bytes": {"size": "1Mi", "tensors": 1}}
    job_file = write_job(tmp_path, **{**FIELDS, "data_loader": {"num_workers": 8, **batch}})
    keep_tune(job_file, "docker", Tune(input_of(read_job(job_file), tuned=True), 2000, 3, 4))
    write_job(tmp_path, **{**FIELDS, "data_loader": {**batch, "inject": "force"}})
    assert planned(job_file).num_workers.value == 3
    assert said(planned(job_file, sets=("data_loader.batch_bytes.size=2Mi",)), "TL729")


def test_a_probe_counts_on_where_the_scripts_own_workers_are_overridden(tmp_path: Path) -> None:
    """What it saw of the script's own number is of no account then; nothing overrides its prefetch_factor."""
    job_file = probed(tmp_path, TRAIN._replace(own_workers=8, own_prefetch=4), data_loader={"num_workers": 2})
    forced = input_of(read_job(job_file), tuned=True)
    keep_probe(job_file, probe_of_job(job_file, TRAIN._replace(own_workers=8, own_prefetch=4), forced_input=forced))
    write_job(tmp_path, **{**FIELDS, "data_loader": {"inject": "force"}})
    plan = planned(job_file)
    assert (plan.num_workers.value, plan.shm.loaders[0].prefetch_factor, plan.shm.unsized) == (0, 4, False)
    assert not said(plan, "TL726")
    write_job(tmp_path, **{**FIELDS, "data_loader": {"inject": "num_workers"}})
    assert said(planned(job_file), "TL726")
    write_job(tmp_path, **{**FIELDS, "data_loader": {"inject": "force", "batch_size": 4}})
    assert said(planned(job_file), "TL726")


def test_plan_says_that_a_probe_was_used(trainlaunch: Runs, tmp_path: Path) -> None:
    """With the lock's line, the script's, and what was measured; JSON says fresh or stale."""
    job_file = probed(tmp_path)
    why = " ".join(trainlaunch("plan", str(job_file), "--why").stdout.split())
    assert "measured on docker with torch 2.9.1" in why
    assert "train at train.py:48: 2 tensors, 2 in use" in why
    assert f"{tmp_path}/job.lock.yaml:13 (lock)" in why
    assert '"probe": "fresh"' in trainlaunch("plan", str(job_file), "-o", "json").stdout
    stale = trainlaunch("plan", str(job_file), "--set", "image=x:1", "-o", "json").stdout
    assert '"probe": "stale"' in stale


def test_a_rendering_says_that_the_lock_decides_its_size(tmp_path: Path) -> None:
    """A reviewer finds the numbers there; a stated batch, or a stale probe, leaves no such line."""
    line = "What data_loader leaves open is from job.lock.yaml, as `trainlaunch probe` or `tune` measured it."
    job_file = probed(tmp_path)
    plan = planned(job_file)
    assert line in verified(plan, render(plan))
    assert line not in render(planned(job_file, sets=("image=other:1",)))


def test_a_stale_probe_warns_in_check_and_fails_with_strict(trainlaunch: Runs, tmp_path: Path) -> None:
    """So that CI can hold a repository to it."""
    job_file = probed(tmp_path)
    write_job(tmp_path, **{**FIELDS, "command": ["python", "other.py"]})
    assert trainlaunch("render", str(job_file), "--write-to", str(tmp_path / "out")).returncode == 0
    lenient, strict = (trainlaunch("check", *words, str(tmp_path / "out")) for words in ((), ("--strict",)))
    assert (lenient.returncode, strict.returncode) == (0, 1)
    assert "warning[TL726]" in lenient.stderr
    fresh = probed(tmp_path)
    trainlaunch("render", str(fresh), "--write-to", str(tmp_path / "out"), "--overwrite")
    assert "TL726" not in trainlaunch("check", "--strict", str(tmp_path / "out")).stderr


def test_what_a_loop_keeps_after_its_end_is_what_was_measured(tmp_path: Path) -> None:
    """Nothing of a loop in a function: workers of later epochs inherit the semaphores' pages alone."""
    unit, pages = 3 * MIB + 4096, 14 * 4096
    for kept, expected in ((0, 0), (1, unit), (None, 2 * unit)):
        shm = planned(probed(tmp_path, TRAIN._replace(batches_held=3, batches_kept=kept))).shm
        assert (shm.need, shm.multi_epoch) == (7 * unit + pages, 7 * unit + expected + 2 * pages)


def test_batches_held_that_the_job_states_are_kept_as_it_says(tmp_path: Path) -> None:
    """A stated value wins, and what follows from it."""
    fields = {"num_workers": 2, "batches_held": 4}
    shm = planned(probed(tmp_path, TRAIN._replace(batches_kept=0), data_loader=fields)).shm
    assert shm.multi_epoch - shm.need == 3 * (3 * MIB + 4096) + 14 * 4096
