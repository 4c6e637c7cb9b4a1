"""Values above a policy's limits, and what a policy requires and the job doesn't set."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trainlaunch.diagnostics import Severity, Span
from trainlaunch.formats.gpus import is_gpu_resource
from trainlaunch.job.ceilings import Ceiling
from trainlaunch.job.spec import JobSpec
from trainlaunch.job.values.patterns import matches
from trainlaunch.plan.launch_plan import LaunchPlan, SharedMemory
from trainlaunch.plan.shared_memory import WHEN_FULL
from trainlaunch.rules.base.rule import Problem, plan_rule
from trainlaunch.rules.plan.job_demands import refused_demands
from trainlaunch.units import format_cpus, format_duration, format_size, needed_size


@plan_rule("TL140", Severity.ERROR)
def above_policy_ceiling(plan: LaunchPlan) -> Iterator[Problem]:
    """A value passes a limit. Nothing is lowered to fit."""
    job = plan.job
    yield from _stated(job)
    yield from _shm_size(job, plan.shm)
    yield from _gpus(job)
    yield from _workers(job)
    yield from refused_demands(plan).above


def _place(span: Span) -> str:
    return f"{span.file}:{span.line}"


def _above(job: JobSpec, field: str, name: str, values: tuple[int, Ceiling], spell: Callable[[int], str]) -> Problem:
    value, most = values
    said = f" ({job.origin(field)})" if job.span(field) is None else ""
    return Problem(
        f"{field} {spell(value)}{said} is above the policy's max.{name} {spell(most.value)} ({_place(most.span)})",
        f"set {field} to {spell(most.value)}, or raise max.{name} in {_place(most.span)}",
        "a policy's limits apply to every job below its folder; no option and no override passes them",
        field,
    )


def _stated(job: JobSpec) -> Iterator[Problem]:
    """Yield an error for each value that a limit makes a job set, and that is above it or missing."""
    for field, asked, spell, why in (
        ("resources.cpus", job.resources.cpus, format_cpus, "without a limit a job may use all of its machine"),
        ("resources.memory", job.resources.memory, format_size, "without a limit a job may use all of its machine"),
        ("active_deadline", job.active_deadline, format_duration, "without a deadline a job may run for ever"),
    ):
        outer, _, name = field.rpartition(".")
        most = job.ceiling(name)
        if most is not None and asked is None:
            line = f"{name}: {spell(most.value)}"
            yield Problem(
                f"{field} is not set, and the policy's max.{name} is {spell(most.value)} ({_place(most.span)})",
                f"add {f'{outer}: {{{line}}}' if outer else line}, or less",
                why,
                field,
                job.span(outer) if outer else None,
            )
        elif most is not None and asked is not None and asked > most.value:
            yield _above(job, field, name, (asked, most), spell)


def _shm_size(job: JobSpec, shm: SharedMemory) -> Iterator[Problem]:
    most = job.ceiling("shm_size")
    if most is None:
        return
    if job.shm_size is not None:
        if job.shm_size > most.value:
            yield _above(job, "shm_size", "shm_size", (job.shm_size, most), format_size)
    elif shm.need > shm.size.value:
        from trainlaunch.rules.sources.deciding_workers import deciding_workers  # which reads the script

        workers = shm.most_workers
        fewer = f"{deciding_workers(job).lower(workers)} or batch_size" if workers else "lower shm_extra"
        yield Problem(
            f"the job needs {needed_size(shm.need)} of /dev/shm, and the policy's max.shm_size is "
            f"{format_size(most.value)} ({_place(most.span)})",
            f"{fewer}, or raise max.shm_size in {_place(most.span)}",
            WHEN_FULL,
            "data_loader",
        )


def _gpus(job: JobSpec) -> Iterator[Problem]:
    here, everywhere = job.ceiling("gpus"), job.ceiling("total_gpus")
    nodes = job.nodes
    if job.resources.gpus.all:
        for name, most in (("gpus", here), ("total_gpus", everywhere)):
            if most is not None:
                yield Problem(
                    f"resources.gpus is all, and the policy's max.{name} is {most.value} ({_place(most.span)})",
                    f"set resources.gpus to {most.value}, or fewer",
                    "all is a different number on each machine, so nothing shows that it is within a limit",
                    "resources.gpus",
                )
        return
    extended = [name for name in job.resources.extended if is_gpu_resource(name)]
    count = job.resources.gpus.count + sum(job.resources.extended[name] for name in extended)
    field = "resources.gpus" if job.resources.gpus or not extended else f"resources.extended.{extended[0]}"
    if here is not None and count > here.value:
        yield _above(job, field, "gpus", (count, here), str)
    if everywhere is None or count * nodes <= everywhere.value:
        return
    if nodes == 1:
        yield _above(job, field, "total_gpus", (count, everywhere), str)
    else:
        yield Problem(
            f"{field} {count} on {nodes} nodes is {count * nodes} in all, above the policy's max.total_gpus "
            f"{everywhere.value} ({_place(everywhere.span)})",
            f"set {field} to {everywhere.value // nodes}, or torchrun.nnodes to {max(1, everywhere.value // count)}",
            field=field,
        )


def _workers(job: JobSpec) -> Iterator[Problem]:
    most = job.ceiling("num_workers")
    said: set[str] = set()
    for loader in job.data_loader.loaders if most is not None else ():
        field = job.loader_field(loader.name, "num_workers")
        if most is not None and (loader.num_workers or 0) > most.value and field not in said:
            said.add(field)
            yield _above(job, field, "num_workers", (loader.num_workers or 0, most), str)


@plan_rule("TL153", Severity.ERROR)
def required_field_missing(plan: LaunchPlan) -> Iterator[Problem]:
    """A required field is set neither by the job nor by anything beneath it."""
    job = plan.job
    for name, span in job.policy.required if job.policy else ():
        if name in job.origins:
            continue
        outer, _, inner = name.rpartition(".")
        stated = next((part for part in (outer, name.partition(".")[0]) if part in job.origins), "")
        yield Problem(
            f"{name} is not set, and the policy requires it ({_place(span)})",
            f"add {inner} to {outer or 'the job'}",
            "what a platform plans with must be set by the job, a profile or a policy's defaults",
            name,
            job.span(stated) if stated else None,
        )


@plan_rule("TL141", Severity.ERROR)
def required_label_missing(plan: LaunchPlan) -> Iterator[Problem]:
    """The job lacks a required label, or has it in another form."""
    job = plan.job
    for name, pattern, span in job.policy.required_labels if job.policy else ():
        value = job.labels.get(name)
        if value is not None and matches(pattern, value):
            continue
        state = "is missing" if value is None else f"is {value!r}" if value else "is empty"
        asked = "a label of that name" if pattern == ".+" else f"a value like {pattern}"
        yield Problem(
            f"the label {name} {state}, and the policy asks for {asked} ({_place(span)})",
            f"add {name} to labels, as in labels: {{{name}: …}}" if value is None else f"set labels.{name} to {asked}",
            "whoever pays for a machine finds its jobs by their labels",
            "labels",
            job.span(f"labels.{name}"),
        )
