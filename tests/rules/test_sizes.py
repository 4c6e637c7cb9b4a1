"""What is wrong between the workers, shm_size, the need of the DataLoaders and the container's limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.plan import make_plan
from trainlaunch.rules import check_plan

from tests.jobs import codes_of, job_with, plan_with
from tests.rules.test_deciding_workers import job_of

MIB = 2**20
GIB = 2**30


def loader(**fields: Any) -> dict[str, Any]:
    """Return a data_loader of two workers that stacks one 1 MiB tensor per batch, with `fields` over it."""
    return {"num_workers": 2, "batch_size": 4, "sample": {"shape": [65536], "dtype": "float32"}, **fields}


def codes(rejected: pytest.ExceptionInfo[JobFileRejected]) -> list[str]:
    """Return the codes of all errors."""
    return [each.code for each in rejected.value.diagnostics]


def test_need_over_memory_is_an_error_with_a_value_that_works(tmp_path: Path) -> None:
    """The memory limit that the fix names gives a plan."""
    spec = {"num_workers": 4, "batch_bytes": {"size": 512 * MIB, "tensors": 1}}
    with pytest.raises(JobFileRejected) as rejected:
        plan_with(tmp_path, data_loader=spec, resources={"memory": "2Gi"})
    assert codes(rejected) == ["TL203"]
    wanted = rejected.value.diagnostics[0].fix.split()[3].rstrip(",")
    assert check_plan(plan_with(tmp_path, data_loader=spec, resources={"memory": wanted})) is not None


def test_shm_size_over_memory_is_an_error_with_a_value_that_works(tmp_path: Path) -> None:
    """A mount as large as the limit is killed before it is full."""
    fields = {"data_loader": loader(), "shm_size": "8Gi"}
    with pytest.raises(JobFileRejected) as rejected:
        plan_with(tmp_path, **fields, resources={"memory": "6Gi"})
    assert codes(rejected) == ["TL201"]
    assert rejected.value.diagnostics[0].span is not None
    wanted = rejected.value.diagnostics[0].fix.split()[3].rstrip(",")
    assert plan_with(tmp_path, **fields, resources={"memory": wanted}).shm.size.value == 8 * GIB


def test_shm_size_below_need_is_an_error(tmp_path: Path) -> None:
    """The stated size stays as it is, and the size that the error names is enough."""
    fields: dict[str, Any] = {"data_loader": loader(batch_size=64), "shm_size": "64Mi"}
    with pytest.raises(JobFileRejected) as rejected:
        plan_with(tmp_path, **fields)
    assert codes(rejected) == ["TL202"]
    shm = make_plan(job_with(tmp_path, **fields)).shm
    assert shm.size.value == 64 * MIB < shm.need == shm.minimum
    wanted = rejected.value.diagnostics[0].fix.split()[3].rstrip(",")
    assert plan_with(tmp_path, **{**fields, "shm_size": wanted}).shm.size.value >= shm.worst_case


def test_working_set_over_memory_is_a_warning(tmp_path: Path) -> None:
    """The estimate of the processes warns, never stops."""
    plan = plan_with(tmp_path, data_loader=loader(), resources={"memory": "600Mi"})
    assert "TL204" in codes_of(plan)


def test_a_size_that_holds_no_worker_is_an_error_never_zero(tmp_path: Path) -> None:
    """Both sizes to type are named: for all workers and for one."""
    spec = {"batch_bytes": {"size": 64 * MIB, "tensors": 1}}
    with pytest.raises(JobFileRejected) as rejected:
        plan_with(tmp_path, data_loader=spec, resources={"gpus": 1, "cpus": 8}, shm_size="128Mi")
    assert codes(rejected) == ["TL205"]
    assert "8 workers" in rejected.value.diagnostics[0].fix


def test_a_stated_size_for_one_epoch_only_is_a_warning_with_the_value(tmp_path: Path) -> None:
    """The first epoch fits, so it is no error; the value that it names gives no warning."""
    spec = loader(batch_size=256)
    plan = plan_with(tmp_path, data_loader=spec, shm_size="400Mi")
    found = [each for each in check_plan(plan) if each.code == "TL210"]
    assert plan.shm.need <= plan.shm.size.value < plan.shm.multi_epoch
    assert len(found) == 1
    wanted = found[0].fix.split()[3].rstrip(",")
    assert "TL210" not in codes_of(plan_with(tmp_path, data_loader=spec, shm_size=wanted))


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_a_stated_size_for_the_first_of_several_loaders_in_turn_is_a_warning(tmp_path: Path, context: str) -> None:
    """It may fail before the first epoch has ended: the second loader starts while the first batch is still held."""
    spec = loader(batch_size=256, loaders={"train": {}, "val": {}}, loaders_run="in_turn")
    plan = plan_with(tmp_path, data_loader={**spec, "multiprocessing_context": context}, shm_size="400Mi")
    (found,) = (each for each in check_plan(plan) if each.code == "TL210")
    assert found.message.startswith("shm_size 400Mi is too small for all loaders in turn: ")
    assert found.why is not None
    assert "may fail once the second loader starts" in found.why
    assert ("inherit" in found.why) is (context == "fork")


def test_the_size_for_one_worker_that_the_error_names_needs_no_warning(tmp_path: Path) -> None:
    """It holds every epoch, and NCCL beside them, as the automatic number asks."""
    fields: dict[str, Any] = {
        "data_loader": {"batch_bytes": {"size": 64 * MIB, "tensors": 1}},
        "resources": {"gpus": 2, "cpus": 8},
        "torchrun": {},
    }
    with pytest.raises(JobFileRejected) as rejected:
        plan_with(tmp_path, **fields, shm_size="128Mi")
    (error,) = rejected.value.diagnostics
    wanted = error.fix.split("at least ")[1].split()[0]
    plan = plan_with(tmp_path, **fields, shm_size=wanted)
    assert (error.code, plan.num_workers.value) == ("TL205", 1)
    assert not {"TL205", "TL210"} & set(codes_of(plan))
    everything = plan_with(tmp_path, **fields, shm_size=error.fix.split()[3])
    assert everything.num_workers.value == 4


def test_more_workers_than_cpus_is_a_warning_and_stays(tmp_path: Path) -> None:
    """The user's own setting wins and is checked."""
    plan = plan_with(tmp_path, resources={"cpus": 2}, data_loader={"num_workers": 8, "collate": "none"})
    assert plan.num_workers.value == 8
    assert "TL206" in codes_of(plan)


def test_half_a_cpu_is_said_as_it_is_stated(tmp_path: Path) -> None:
    """Rounding is ours: nobody finds `resources.cpus 1` in the job file."""
    plan = plan_with(tmp_path, resources={"cpus": 0.5}, data_loader={"num_workers": 8, "collate": "none"})
    (said,) = [each.message for each in check_plan(plan) if each.code == "TL206"]
    assert said.endswith("exceed resources.cpus 0.5")


SERVED: dict[str, Any] = {
    "command": ["vllm", "serve", "org/model", "-tp", "8"],
    "resources": {"cpus": 32, "memory": "200Gi", "gpus": 8},
    "data_loader": "none",
}


def test_an_owner_that_the_command_starts_is_to_be_named(tmp_path: Path) -> None:
    """Named it is counted; a size of the job's own, one worker, or Ray that only gets a job is nothing to name."""
    assert codes_of(plan_with(tmp_path, **SERVED)) == ["TL216"]
    drafted = {name: value for name, value in SERVED.items() if name != "data_loader"}
    fixes = [each.fix for each in check_plan(plan_with(tmp_path, **drafted)) if each.code == "TL209"]
    assert [each.partition(",")[0] for each in fixes] == ["write data_loader: none"]
    named = plan_with(tmp_path, **SERVED, shm_extra=[{"name": "vllm"}])
    assert codes_of(named) == []
    assert (named.shm.need, named.shm.size.value // MIB) == (0, 8 * 128 + 160 + 8 * 240 + 24)
    for fields in (
        {"shm_size": "1Gi"},
        {"command": ["vllm", "serve", "org/model"]},
        {"command": ["ray", "job", "submit", "--", "python", "train.py"]},
    ):
        assert codes_of(plan_with(tmp_path, **{**SERVED, **fields})) == []
    started = {**SERVED, "command": ["/bin/sh", "-c", "ray start --head && python train.py"]}
    assert codes_of(plan_with(tmp_path, **started)) == ["TL216"]
    assert plan_with(tmp_path, **started, shm_extra=[{"name": "ray"}]).shm.need == 66 * GIB
    options = {**SERVED, "image": "vllm/vllm-openai:v1", "command": ["--model", "m", "-tp", "8"]}
    assert codes_of(plan_with(tmp_path, **options)) == ["TL216"]


@pytest.mark.parametrize(
    ("script", "right", "wrong"),
    [
        ("import ray\nray.init(object_store_memory=10 * 2**30)\n", ["10Gi", "40Gi", None], ["9Gi"]),
        ("import ray\nray.init(object_store_memory=100 * 2**30)\n", ["110Gi"], [None]),
        ("from vllm import LLM\nLLM('m', tensor_parallel_size=4)\n", ["1Gi", "1144Mi", None], []),
        ("from vllm import LLM\nLLM('m', tensor_parallel_size=16)\n", ["1Gi"], [None]),
    ],
)
def test_an_owner_that_the_script_sizes_is_to_be_counted_so(
    tmp_path: Path, script: str, right: list[str], wrong: list[str | None]
) -> None:
    """By its own number, which no plan reads, or with more. With less Ray is on disk; vLLM's law is a bound alone."""
    owner = script.split()[1]
    job = {**job_of(tmp_path, script, []), **{key: SERVED[key] for key in ("resources", "data_loader")}}
    assert "TL219" in codes_of(plan_with(tmp_path, **job))
    for told, sizes in ((False, right), (True, wrong)):
        for size in sizes:
            entry = {"name": owner} if size is None else {"name": owner, "size": size}
            assert ("TL219" in codes_of(plan_with(tmp_path, **job, shm_extra=[entry]))) is told, size


@pytest.mark.parametrize(
    "script",
    [
        "import ray\nray.init()\n",
        "import ray\nray.init(object_store_memory=None)\n",
        "class LLM:\n    pass\nLLM(tensor_parallel_size=4)\n",
    ],
)
def test_a_script_that_leaves_it_to_the_owner_is_told_nothing(tmp_path: Path, script: str) -> None:
    """Ray without a number may join a cluster that runs; another class of the name is none of vLLM's."""
    job = {**job_of(tmp_path, script, []), **{key: SERVED[key] for key in ("resources", "data_loader")}}
    assert "TL219" not in codes_of(plan_with(tmp_path, **job))


def test_nccl_that_is_named_is_counted_once(tmp_path: Path) -> None:
    """It is what a job with GPUs has anyway."""
    fields = {"resources": {"cpus": 8, "memory": "64Gi", "gpus": 4}, "data_loader": "none"}
    sizes = {plan_with(tmp_path, **fields, **more).shm.size.value for more in ({}, {"shm_extra": [{"name": "nccl"}]})}
    assert sizes == {4 * 128 * MIB}
