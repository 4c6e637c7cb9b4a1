"""Measurements in the lock that the plan doesn't use, or that contradict what the job file sets."""

from __future__ import annotations

from collections.abc import Iterator

from trainlaunch.diagnostics import Severity
from trainlaunch.job.loader_spec import LoaderSpec, ProbedLoader, ProbeMeasurement
from trainlaunch.plan.batch import batch_pages
from trainlaunch.plan.instrumentation import INJECTED, OVERRIDING
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.lock_overrides import fresh_probe, fresh_tune, measuring_command, states, states_batch
from trainlaunch.plan.shared_memory import PAGE
from trainlaunch.rules.base.rule import Problem, plan_rule
from trainlaunch.units import KIB, format_cpus, format_size, human_size, round_up

_STATED_WINS = (
    "what the job file sets wins, so /dev/shm is planned for less than the script takes: 'Bus error', or it hangs"
)


@plan_rule("TL726", Severity.WARNING)
def probe_stale(plan: LaunchPlan) -> Iterator[Problem]:
    """The lock has a probe that is of another job."""
    measured = plan.job.measured
    if measured is None or measured.probe is None or fresh_probe(plan.job) is not None:
        return
    target = measured.probe.target
    changed = f"image, command, data_loader or ranks on {target} have changed since"
    if measured.probed is None:
        changed = f"the job file has errors for target {target}, on which it was measured"
    yield Problem(
        f"what the lock's probe measured is not used: {changed}",
        f"run `{measuring_command('probe', plan.job, target)}`, or delete `probe:` there",
        "the bytes of a batch and what is alive together follow from those, and a /dev/shm that is too small ends "
        "in 'Bus error'",
        span=measured.probe.span,
    )


@plan_rule("TL729", Severity.WARNING)
def tune_stale(plan: LaunchPlan) -> Iterator[Problem]:
    """The lock has a tune of this target that is of another job or of other CPUs."""
    job = plan.job
    tune = job.measured.tune if job.measured else None
    if tune is None or fresh_tune(job) is not None:
        return
    changed = "image, command, data_loader or ranks have changed since"
    if tune.cpus != job.resources.cpus:
        had, has = (format_cpus(each) if each else "no limit" for each in (tune.cpus, job.resources.cpus))
        changed = f"it was measured with resources.cpus {had}, and the job has {has}"
    yield Problem(
        f"what the lock's tune found on {job.target} is not used: {changed}",
        f"run `{measuring_command('tune', job)}`, or delete it there",
        "how many workers are fastest follows from the script and from its CPUs",
        span=tune.span,
    )


@plan_rule("TL730", Severity.WARNING)
def workers_not_injected(plan: LaunchPlan) -> Iterator[Problem]:
    """A loader is given no workers."""
    probe = fresh_probe(plan.job)
    if probe is None or plan.job.data_loader.inject not in {INJECTED, OVERRIDING}:
        return
    again = measuring_command("probe", plan.job, probe.target)
    for loader, probed in zip(plan.job.data_loader.loaders, probe.loaders, strict=True):
        if probed.against_workers:
            reasons = ", ".join(probed.against_workers)
            yield Problem(
                f"{loader.name} is given no workers: at {probed.at} probe found {reasons}",
                f"mend it as probe says, then run `{again}`",
                "workers would read wrong samples, repeat random numbers, or wait for ever, mostly without an error",
                "data_loader.inject",
            )


@plan_rule("TL727", Severity.WARNING)
def larger_than_stated(plan: LaunchPlan) -> Iterator[Problem]:
    """The job sets numbers that its script was seen to exceed."""
    probe = fresh_probe(plan.job)
    if probe is None:
        return
    for loader, probed in zip(plan.job.data_loader.loaders, probe.loaders, strict=True):
        yield from _of_batch(plan, loader, probed)
        yield from _of_numbers(plan, loader, probed)
    yield from _of_all(plan, probe)


def _of_batch(plan: LaunchPlan, loader: LoaderSpec, probed: ProbedLoader) -> Iterator[Problem]:
    """Compare the bytes of a batch, in whole pages."""
    if not states_batch(plan.job, loader):
        return
    seen = loader._replace(collate="stack", sample=None, batch_bytes=None, storages=probed.storages)
    stated, measured = (batch_pages(each, PAGE, file_system=False).unit for each in (loader, seen))
    if measured > stated:
        size = f"{{size: {_size(sum(probed.storages))}, tensors: {len(probed.storages)}}}"
        field = "collate" if not loader.stated_size else "batch_bytes" if loader.batch_bytes else "sample"
        yield Problem(
            f"a batch of {loader.name} took {human_size(measured)} at {probed.at}, and {field} gives "
            f"{human_size(stated)}",
            f"delete {field} of {loader.name}, or set batch_bytes: {size}",
            _STATED_WINS,
            plan.job.loader_field(loader.name, field),
        )


def _of_numbers(plan: LaunchPlan, loader: LoaderSpec, probed: ProbedLoader) -> Iterator[Problem]:
    """Compare workers, prefetched batches and held ones."""
    seen = {
        "num_workers": probed.num_workers,
        "prefetch_factor": probed.own_prefetch,
        "batches_held": probed.batches_held,
    }
    for field, measured in seen.items():
        stated = getattr(loader, field)
        if measured is not None and stated is not None and measured > stated and states(plan.job, loader, field):
            yield Problem(
                f"{loader.name} had {field} {measured} at {probed.at}, and the job file sets {stated}",
                f"set {field} of {loader.name} to {measured}, or delete it",
                _STATED_WINS,
                plan.job.loader_field(loader.name, field),
            )


def _of_all(plan: LaunchPlan, probe: ProbeMeasurement) -> Iterator[Problem]:
    """Compare what all loaders share."""
    spec = plan.job.data_loader
    if spec.loaders_run == "in_turn" != probe.loaders_run and len(spec.loaders) > 1:
        yield Problem(
            "loaders were alive together in the script, and loaders_run is in_turn",
            "set loaders_run to together, or delete it",
            _STATED_WINS,
            "data_loader.loaders_run",
        )
    measured, stated = probe.dataset_tensor_bytes, spec.dataset_tensor_bytes
    if measured > stated and states(plan.job, None, "dataset_tensor_bytes"):
        took, planned = human_size(measured), human_size(stated)
        yield Problem(
            f"the dataset's tensors took {took}, and dataset_tensor_bytes is {planned}",
            f"set dataset_tensor_bytes to {_size(measured)}",
            _STATED_WINS,
            "data_loader.dataset_tensor_bytes",
        )


def _size(measured: int) -> str:
    """Return bytes as a job file takes them, at least as many."""
    return format_size(round_up(measured, KIB))
