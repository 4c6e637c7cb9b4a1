"""Properties that hold for every job: an error, or numbers that fit each other."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from trainlaunch.errors import JobFileRejected
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.workers_and_threads import whole_cpus
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.verify import verify

from tests.jobs import write_job
from tests.sampling import examples

MIB = 2**20
DTYPES = ("uint8", "float16", "float32", "int64")
OTHER_LOADERS: tuple[dict[str, Any], ...] = (
    {}, {"num_workers": 2}, {"prefetch_factor": 3}, {"batches_held": 7, "persistent_workers": True}, {"num_workers": 0},
)  # fmt: skip


@st.composite
def data_loaders(draw: st.DrawFn) -> dict[str, Any]:
    """Return a data_loader block: sized by a sample or by bytes, or not at all."""
    spec: dict[str, Any] = {"prefetch_factor": draw(st.integers(1, 5)), "batches_held": draw(st.integers(1, 4))}
    kind = draw(st.sampled_from(("sample", "bytes", "none")))
    if kind == "sample":
        tensor = st.fixed_dictionaries(
            {"shape": st.lists(st.integers(1, 256), max_size=3), "dtype": st.sampled_from(DTYPES)}
        )
        spec["sample"] = draw(st.lists(tensor, min_size=1, max_size=3))
        spec["batch_size"] = draw(st.integers(1, 64))
        spec["collate"] = draw(st.sampled_from(("stack", "list", "none")))
    if kind == "bytes":
        tensors = draw(st.integers(1, 100))
        spec["batch_bytes"] = {"size": draw(st.integers(MIB, 512 * MIB)), "tensors": tensors}
    if draw(st.booleans()):
        spec["num_workers"] = draw(st.integers(0, 8))
    if draw(st.booleans()):
        spec["loaders"] = {"train": {}, "val": draw(st.sampled_from(OTHER_LOADERS))}
        spec["loaders_run"] = draw(st.sampled_from(("together", "in_turn")))
    spec["persistent_workers"] = draw(st.booleans())
    spec["multiprocessing_context"] = draw(st.sampled_from(("fork", "spawn")))
    return spec


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    """Return the fields of a job that renders on all targets."""
    resources: dict[str, Any] = {
        "cpus": draw(st.sampled_from((1, 2, 4, 7, 16, "1500m"))),
        "memory": f"{draw(st.integers(80, 65536))}Mi",
        "gpus": draw(st.sampled_from((0, 0, 1, 2, 8))),
    }
    fields: dict[str, Any] = {"resources": resources, "data_loader": draw(data_loaders())}
    if draw(st.booleans()):
        fields["torchrun"] = {"nproc_per_node": draw(st.integers(1, 4))}
    if draw(st.booleans()):
        fields["shm_size"] = f"{draw(st.integers(64, 8192))}Mi"
    return fields


def planned(fields: dict[str, Any], target: str = "docker") -> LaunchPlan | None:
    """Return the plan, or None where an error was returned."""
    from trainlaunch.policy import read_job

    with tempfile.TemporaryDirectory() as folder:
        job = read_job(write_job(Path(folder), **fields), target=target)
        try:
            return plan_job(job)
        except JobFileRejected:
            return None


@settings(max_examples=examples(150), deadline=None)
@given(jobs())
def test_an_error_or_need_below_size_below_memory(fields: dict[str, Any]) -> None:
    """need ≤ size < memory, and automatic workers keep the CPU budget."""
    plan = planned(fields)
    if plan is None:
        return
    assert plan.memory.limit is not None
    assert plan.shm.need <= plan.shm.size.value < plan.memory.limit
    assert plan.shm.size.value >= 64 * MIB
    cpus = whole_cpus(plan.job)
    if plan.auto_workers and cpus is not None and plan.num_workers.value > 1:
        assert plan.num_workers.value * plan.ranks.value <= cpus
    if plan.auto_workers and not plan.gpus and cpus is not None and cpus < 4:
        assert plan.num_workers.value == 0


@settings(max_examples=examples(100), deadline=None)
@given(jobs(), st.integers(1, 7), st.sampled_from(("batch", "num_workers", "prefetch_factor", "batches_held")))
def test_need_is_monotone(fields: dict[str, Any], workers: int, grown: str) -> None:
    """More bytes, workers, a longer prefetch or more batches held never need less, and need is never above the rest."""
    spec = {**fields["data_loader"], "num_workers": workers}
    fields = {**fields, "data_loader": spec, "resources": {**fields["resources"], "memory": "4Ti"}}
    fields.pop("shm_size", None)
    before = planned(fields)
    more = dict(spec)
    if grown != "batch":
        more[grown] += 1
    elif "batch_size" in more:
        more["batch_size"] += 1
    elif "batch_bytes" in more:
        more["batch_bytes"] = {**more["batch_bytes"], "size": more["batch_bytes"]["size"] + 5000}
    after = planned({**fields, "data_loader": more})
    assert before is not None
    assert after is not None
    for each in (before.shm, after.shm):
        assert each.need <= each.multi_epoch <= each.worst_case
    assert before.shm.need <= after.shm.need
    assert before.shm.multi_epoch <= after.shm.multi_epoch
    assert before.shm.worst_case <= after.shm.worst_case


@settings(max_examples=examples(80), deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "num_workers": st.integers(0, 6),
                "prefetch_factor": st.integers(1, 4),
                "batches_held": st.integers(1, 6),
                "persistent_workers": st.booleans(),
                "batch_size": st.integers(1, 64),
            }
        ),
        min_size=2,
        max_size=4,
    ),
    st.sampled_from(("together", "in_turn")),
    st.sampled_from(("fork", "spawn")),
    st.integers(1, 3),
)
def test_one_loader_more_never_needs_less(
    loaders: list[dict[str, Any]], loaders_run: str, context: str, ranks: int
) -> None:
    """Of any loaders, whichever way they run: what is stated is counted, and need ≤ multi_epoch ≤ worst_case."""

    def shm(count: int) -> tuple[int, int, int]:
        named = {f"loader{number}": each for number, each in enumerate(loaders[:count])}
        spec = {"sample": {"shape": [1000], "dtype": "float32"}, "loaders": named, "loaders_run": loaders_run}
        resources = {"cpus": 64, "memory": "4Ti"}
        fields = {"data_loader": {**spec, "multiprocessing_context": context}, "resources": resources}
        plan = planned({**fields, "torchrun": {"nproc_per_node": ranks}})
        assert plan is not None
        return plan.shm.need, plan.shm.multi_epoch, plan.shm.worst_case

    sizes = [shm(count) for count in range(1, len(loaders) + 1)]
    for each in sizes:
        assert sorted(each) == list(each)
    for fewer, more in itertools.pairwise(sizes):
        assert all(one <= other for one, other in zip(fewer, more, strict=True))


@settings(max_examples=examples(60), deadline=None)
@given(jobs())
def test_no_workers_need_nothing(fields: dict[str, Any]) -> None:
    """W = 0 puts nothing in /dev/shm, and the size is still explicit."""
    spec = {**fields["data_loader"], "num_workers": 0, "loaders": {"train": {}}}
    plan = planned({**fields, "data_loader": spec})
    if plan is not None:
        assert plan.shm.need == 0
        assert plan.shm.size.value >= 64 * MIB


@settings(max_examples=examples(40), deadline=None)
@given(jobs())
def test_every_rendering_carries_the_same_bytes(fields: dict[str, Any]) -> None:
    """One number of bytes in docker run, Compose and Kubernetes; verify re-reads each."""
    sizes = set()
    for target in ("docker", "compose", "kubernetes"):
        plan = planned(fields, target)
        if plan is None:
            return
        text = render(plan)
        verify(plan, text)
        size = plan.shm.size.value
        assert {"docker": f"{size // MIB}m", "compose": f"{size // MIB}m", "kubernetes": f"{size // MIB}Mi"}[
            target
        ] in text or (str(size) in text)
        sizes.add(size)
    assert len(sizes) == 1
