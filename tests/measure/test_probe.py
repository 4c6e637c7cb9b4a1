"""Which loader of the script is which of the job file, and what the lock then keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trainlaunch.cli.arguments.measuring import keep_probe
from trainlaunch.job.loader_spec import ProbeMeasurement
from trainlaunch.measure.finding import ProbeFinding
from trainlaunch.measure.findings import DEFECTS, diagnosed
from trainlaunch.measure.loader_records import Records
from trainlaunch.measure.measuring_run import RunOutput, _Listener, measuring_name, measuring_sets
from trainlaunch.measure.probe_lock import AGAINST_WORKERS, assigned, host_findings, probe_of, stated_lines, with_probe
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy import read_job
from trainlaunch.rules import plan_job
from trainlaunch.units import GIB, MIB, round_up

from tests import plain_yaml
from tests.jobs import job_with, plan_with, write_job
from tests.measure.spoken import a_loader, a_probe, spoken

LIMITS = {"resources": {"cpus": 2, "memory": "4Gi"}}


def seen(*loaders: list[dict[str, Any]]) -> Any:
    """Return the measurement of a process with these loaders."""
    records = Records()
    for each in a_probe(*loaders):
        records.take(each)
    return records.measured()


def probed(plan: LaunchPlan, *loaders: list[dict[str, Any]], workers: int | None = None) -> ProbeMeasurement:
    """Return what the lock keeps of such a measurement."""
    probe = probe_of(plan, seen(*loaders), workers)
    assert probe is not None
    return probe


def test_the_loader_that_trains_is_the_jobs_first(tmp_path: Path) -> None:
    """Lightning looks at the validation loader first."""
    job = job_with(tmp_path, data_loader={"loaders": {"train": {}, "val": {}}})
    loaders = seen(a_loader(0, trains=False), a_loader(1, trains=True)).loaders
    assert [each.number for each in assigned(job, loaders)] == [1, 0]


def test_others_are_told_apart_by_batch_size(tmp_path: Path) -> None:
    """However late each comes."""
    named = {"train": {}, "val": {"batch_size": 64}, "test": {"batch_size": 1}}
    job = job_with(tmp_path, data_loader={"batch_size": 32, "loaders": named})
    loaders = seen(a_loader(0), a_loader(1, batch_size=1), a_loader(2, batch_size=64)).loaders
    assert [each.number for each in assigned(job, loaders)] == [0, 2, 1]


@pytest.mark.parametrize("sizes", [(64, 64), (None, None), (8, 9)])
def test_where_batch_size_tells_nothing_the_first_iteration_does(tmp_path: Path, sizes: tuple[Any, Any]) -> None:
    """Equal ones, none (Accelerate hides it), or others than the job's; one that was never iterated comes last."""
    named = {"train": {}, "val": {"batch_size": 64}, "test": {"batch_size": 64}}
    job = job_with(tmp_path, data_loader={"loaders": named})
    loaders = seen(
        a_loader(0), a_loader(1, order=None, batch_size=sizes[0]), a_loader(2, order=1, batch_size=sizes[1])
    ).loaders
    assert [each.number for each in assigned(job, loaders)] == [0, 2, 1]


@pytest.mark.parametrize("built", [1, 3])
def test_another_number_of_loaders_is_a_finding_and_kept_nowhere(tmp_path: Path, built: int) -> None:
    """Which is which can't be told."""
    plan = plan_with(tmp_path, data_loader={"loaders": {"train": {}, "val": {}}}, **LIMITS)
    loaders = [a_loader(number) for number in range(built)]
    (finding,) = host_findings(plan.job, seen(*loaders))
    assert (finding.facts["seen"], finding.facts["stated"]) == (built, 2)
    assert probe_of(plan, seen(*loaders), None) is None


def test_loaders_that_come_after_an_epoch_are_named_with_the_flag_that_reaches_them(tmp_path: Path) -> None:
    """One batch more than an epoch has, and seconds where it takes longer; `--through` where it is too long."""
    job = job_with(tmp_path, data_loader={"loaders": {"train": {}, "val": {}}})
    flags = {}
    for epoch in (59, 400, 4000, None):
        (found,) = host_findings(job, seen(a_loader(0, epoch_batches=epoch)))
        flags[epoch] = found.facts["flags"]
    assert flags == {59: "--batches 60", 400: "--batches 401 --seconds 161", 4000: "--through", None: "--through"}
    said = diagnosed(found._replace(facts={**found.facts, "epoch": 59, "flags": "--batches 60"}))
    assert said is not None
    assert said.message == "1 of 2 loaders (train, val) were read, at train.py:48"
    assert "--batches 60" in said.fix
    assert "after 32 batches of 59 of an epoch" in said.why
    (more,) = host_findings(job, seen(a_loader(0), a_loader(1), a_loader(2)))
    assert "flags" not in more.facts


def test_what_workers_bring_out_is_kept_of_the_loader_that_has_it(tmp_path: Path) -> None:
    """A finding of the whole script is of each; what has nothing to do with workers is of none."""
    records = Records()
    for each in a_probe(a_loader(0), a_loader(1)):
        records.take(each)
    found: list[tuple[str, int | None, str, dict[str, Any]]] = [
        *(("handle-in-init", 1, "train.py:49", {}), ("slow-collate", 0, "train.py:48", {})),
        *(("threads-before-fork", None, "train.py:7", {}), ("unpicklable", 1, "train.py:49", {"part": "dataset"})),
        *(("unpicklable", 0, "train.py:48", {"part": "batch"}), ("worker-hang", 0, "of_another_process.py:9", {})),
    ]
    findings = tuple(ProbeFinding(*each) for each in found)
    plan = plan_with(tmp_path, data_loader={"loaders": {"train": {}, "val": {}}}, **LIMITS)
    probe = probe_of(plan, records.measured()._replace(findings=findings), None)
    assert probe is not None
    assert [each.against_workers for each in probe.loaders] == [
        ("threads-before-fork", "unpicklable"),
        ("handle-in-init", "threads-before-fork"),
    ]
    assert set(DEFECTS) >= AGAINST_WORKERS


def test_a_number_of_batches_that_grows_is_no_number_to_plan_with(tmp_path: Path) -> None:
    """What was held after 32 of them says nothing of an epoch; the finding does."""
    plan = plan_with(tmp_path, **LIMITS)
    measured = seen(a_loader(batches_held=5, batches_kept=4))
    assert probed(plan, a_loader(batches_held=5, batches_kept=4)).loaders[0].batches_held == 5
    grows = ProbeFinding("kept-batches", 0, "train.py:48", {})
    probe = probe_of(plan, measured._replace(findings=(grows,)), None)
    assert probe is not None
    assert (probe.loaders[0].batches_held, probe.loaders[0].batches_kept) == (2, None)


def test_a_loader_without_a_batch_is_kept_nowhere(tmp_path: Path) -> None:
    """Zero bytes would be a size."""
    assert probe_of(plan_with(tmp_path, **LIMITS), seen(a_loader(storages=None)), None) is None


def test_what_the_script_states_itself_is_told_from_what_it_took(tmp_path: Path) -> None:
    """The plan gives 0 workers on two CPUs: a script that runs two has them from nobody else."""
    plan = plan_with(tmp_path, **LIMITS)
    (own,) = probed(plan, a_loader(prefetch_factor=4, persistent_workers=True)).loaders
    assert (own.own_workers, own.own_prefetch, own.own_persistent) == (2, 4, True)
    (took,) = probed(plan, a_loader(num_workers=0, prefetch_factor=None)).loaders
    assert (took.own_workers, took.own_prefetch, took.own_persistent) == (None, None, None)


def test_a_batch_of_many_tensors_makes_no_lock_that_cannot_be_read(tmp_path: Path) -> None:
    """Detection lists: thousands of small storages; the pages are the same."""
    job_file = write_job(tmp_path, **LIMITS)
    plan = plan_job(read_job(job_file))
    storages = [*range(1, 12_001), 3 << 20]
    keep_probe(job_file, probed(plan, a_loader(storages=storages)))
    need = plan_job(read_job(job_file)).shm.loaders[0]
    assert need.unit == sum(round_up(each, 4096) for each in storages)


def test_what_a_loop_keeps_is_kept(tmp_path: Path) -> None:
    """A loop in a function holds nothing after its end."""
    plan = plan_with(tmp_path, **LIMITS)
    none, one = (plan_job(with_probe(plan.job, probed(plan, a_loader(batches_kept=each)))).shm for each in (0, 1))
    assert one.multi_epoch - none.multi_epoch == (3 << 20) + 4096
    assert one.need == none.need


def test_workers_that_the_preflight_lowered_are_the_plans(tmp_path: Path) -> None:
    """Without resources.cpus the plan has 16, the machine two, and the script follows."""
    plan = plan_with(tmp_path)
    assert plan.num_workers.value == 16
    assert probed(plan, a_loader(), workers=2).loaders[0].own_workers is None


def test_loaders_are_together_or_in_turn(tmp_path: Path) -> None:
    """As they were seen; one that was not iterated, or not to its end, or in no whole epoch, may be with any other."""
    plan = plan_with(tmp_path, data_loader={"loaders": {"a": {}, "b": {}}}, **LIMITS)
    run = [
        probed(plan, a_loader(0, tensor_bytes=5), a_loader(1, tensor_bytes=7, **how))
        for how in ({}, {"together_with": [0]}, {"order": None}, {"ended": 0, "whole_epochs": 0}, {"whole_epochs": 0})
    ]
    assert [each.loaders_run for each in run] == ["in_turn", "together", "together", "together", "in_turn"]
    assert [each.dataset_tensor_bytes for each in run] == [7, 12, 12, 12, 7]
    cut = probed(plan, a_loader(0, whole_epochs=0), a_loader(1))  # an evaluation in its middle would have come later
    assert cut.loaders_run == "together"
    stated = plan_with(tmp_path, data_loader={"loaders": {"a": {}, "b": {}}, "loaders_run": "in_turn"}, **LIMITS)
    seen = [probed(stated, a_loader(0), a_loader(1, **how)) for how in ({"ended": 0}, {"together_with": [0]})]
    assert [each.loaders_run for each in seen] == ["in_turn", "together"], "what was not seen contradicts nothing"


@pytest.mark.parametrize(
    ("data_loader", "loaders"),
    [
        ({}, [a_loader()]),
        ({}, [a_loader(prefetch_factor=3, persistent_workers=True, batches_held=4, start_method="spawn")]),
        ({}, [a_loader(storages=[])]),
        ({"loaders": {"train": {}, "val": {}}}, [a_loader(0), a_loader(1, num_workers=1)]),
        ({"loaders": {"train": {}, "val": {}}}, [a_loader(0), a_loader(1, together_with=[0])]),
    ],
)
def test_the_lines_to_paste_plan_what_the_lock_would(
    tmp_path: Path, data_loader: dict[str, Any], loaders: list[list[dict[str, Any]]]
) -> None:
    """At least as much, and at most some pages more, since only the sum of the storages is stated."""
    plan = plan_with(tmp_path, data_loader=data_loader, **LIMITS)
    probe = probed(plan, *loaders)
    locked = plan_job(with_probe(plan.job, probe)).shm
    assert locked.unsized is False
    pasted = plain_yaml.load("\n".join(stated_lines(plan.job, probe)))
    stated = plan_with(tmp_path / "stated", **pasted, **LIMITS).shm
    assert locked.multi_epoch <= stated.multi_epoch <= locked.multi_epoch + MIB


@pytest.mark.parametrize("kept", [0, 1, 4])
def test_the_lines_to_paste_have_room_for_what_a_loop_keeps(tmp_path: Path, kept: int) -> None:
    """No field says it alone."""
    plan = plan_with(tmp_path, **LIMITS)
    probe = probed(plan, a_loader(batches_kept=kept))
    pasted = plain_yaml.load("\n".join(stated_lines(plan.job, probe)))
    stated = plan_with(tmp_path / "stated", **pasted, **LIMITS).shm
    assert plan_job(with_probe(plan.job, probe)).shm.multi_epoch <= stated.multi_epoch


def test_a_run_that_measures_has_the_jobs_limits_and_a_larger_shm(tmp_path: Path) -> None:
    """Another name, one attempt, no longer grace than it needs; data_loader is as it was."""
    job_file = write_job(tmp_path, restart={"max_attempts": 3}, shm_size="1Gi", torchrun={"nnodes": 2}, **LIMITS)
    plan = plan_job(read_job(job_file, target="compose"))
    sets = measuring_sets(plan, measuring_name(plan.name, "probe"), seconds=60, host_memory=8 * GIB)
    measuring = plan_job(read_job(job_file, target="compose", sets=sets))
    assert measuring.job.name.startswith("digits-probe-")
    assert (measuring.job.max_attempts, measuring.nodes, measuring.memory.limit) == (1, 1, 4 * GIB)
    assert measuring.shm.size.value == 4 * GIB - MIB
    assert (measuring.job.stop_grace_period, measuring.job.active_deadline) == (10, 1860)
    assert measuring.job.data_loader == plan.job.data_loader
    assert measuring.ranks == plan.ranks


def test_without_a_memory_limit_half_of_the_machine_is_a_cap(tmp_path: Path) -> None:
    """At least what the plan has."""
    plan = plan_with(tmp_path)
    for host, size in ((64 * GIB, 32 * GIB), (2 * GIB, plan.shm.size.value)):
        assert f"shm_size={size}" in measuring_sets(plan, "x-probe", seconds=1, host_memory=host)


def test_a_host_keeps_its_own_shm(tmp_path: Path) -> None:
    """Target local can't have another one."""
    plan = plan_with(tmp_path, target="local")
    assert not any(each.startswith("shm_size") for each in measuring_sets(plan, "x", seconds=1, host_memory=GIB))


@pytest.mark.parametrize("kind", ["jobset", "pytorchjob", "job"])
def test_one_node_of_a_cluster_is_a_job(tmp_path: Path, kind: str) -> None:
    """Whatever controller the job itself needs."""
    job_file = write_job(tmp_path, target="kubernetes", kubernetes={"kind": kind}, **LIMITS)
    plan = plan_job(read_job(job_file))
    sets = measuring_sets(plan, "x-probe", seconds=1, host_memory=GIB)
    measuring = plan_job(read_job(job_file, sets=sets)).job
    assert measuring.kind is not None
    assert measuring.kind.word == "job"


def test_a_long_name_stays_one(tmp_path: Path) -> None:
    """A label of at most 63 characters, whatever the job's is."""
    for name in ("a", "a" * 63, f"{'a' * 39}-b"):
        made = measuring_name(name, "probe")
        assert len(made) <= 63
        assert plan_job(read_job(write_job(tmp_path, name=made))).name == made


def test_what_a_script_prints_before_the_record_that_is_enough_is_shown_in_whatever_pieces_it_comes() -> None:
    """A busy machine reads all of it at once; what comes after the record is the echo of its end."""
    text = "trained\n" + spoken({"kind": "end", "reason": "seconds"}) + "echo\n"
    for size in (1, 7, len(text)):
        shown: list[bytes] = []
        listener = _Listener(lambda _: True, RunOutput(shown.append, print), lambda _: None)
        for at in range(0, len(text), size):
            listener.feed(True, text[at : at + size].encode())
        listener.end()
        assert b"".join(shown) == b"trained\n"
