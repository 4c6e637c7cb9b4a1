r"""The job asks for more than its policy allows.

**Why it matters**:
a policy's ceilings hold for every job below its folder. They are checked after everything else, so no option,
override or patch passes them, and nothing is lowered in silence: only automatic sizes are capped, and say so.

**Example**:

```sh
printf 'max: {memory: 16Gi}\n' > trainlaunch-policy.yaml
trainlaunch plan job.yaml --set resources.memory=32Gi
```

**Use instead**:

```sh
printf 'max: {memory: 16Gi}\n' > trainlaunch-policy.yaml
trainlaunch plan job.yaml --set resources.memory=16Gi
```

**Fix**: type the ceiling, or less; raising it is for the policy's owner.

**References**: docs/policy.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from launcher.diagnostics import Diagnostic, Severity, Span
from launcher.formats.gpus import GPU_RESOURCE
from launcher.job.ceilings import Limit
from launcher.job.spec import JobSpec
from launcher.plan.launch_plan import LaunchPlan, SharedMemory
from launcher.plan.shared_memory import WHEN_FULL
from launcher.rules.job_demands import refused_demands
from launcher.units import format_cpus, format_duration, format_size, human_size

CODE = "TL140"
NAME = "above-policy-ceiling"
SEVERITY = Severity.ERROR


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error for each ceiling that a value passes. Nothing is lowered to fit."""
    job = plan.job
    yield from _stated(job)
    yield from _shm_size(job, plan.shm)
    yield from _gpus(job)
    yield from _workers(job)
    yield from (each for each in refused_demands(plan) if each.code == CODE)


def _place(span: Span) -> str:
    return f"{span.file}:{span.line}"


def _above(job: JobSpec, field: str, name: str, values: tuple[int, Limit], spell: Callable[[int], str]) -> Diagnostic:
    value, most = values
    said = f" ({job.origin(field)})" if job.span(field) is None else ""
    return Diagnostic(
        CODE,
        f"{field} {spell(value)}{said} is above the policy's max.{name} {spell(most.value)} ({_place(most.span)})",
        f"set {field} to {spell(most.value)}, or raise max.{name} in {_place(most.span)}",
        why="a policy's ceilings hold for every job below its folder; no option and no override passes them",
        span=job.span(field),
        field=field,
    )


def _stated(job: JobSpec) -> Iterator[Diagnostic]:
    """Yield an error for each value that a ceiling makes a job state, and that is above it or missing."""
    for field, asked, spell, why in (
        ("resources.cpus", job.resources.cpus, format_cpus, "without a limit a job may use all of its machine"),
        ("resources.memory", job.resources.memory, format_size, "without a limit a job may use all of its machine"),
        ("active_deadline", job.active_deadline, format_duration, "without a deadline a job may run for ever"),
    ):
        outer, _, name = field.rpartition(".")
        most = job.ceiling(name)
        if most is not None and asked is None:
            line = f"{name}: {spell(most.value)}"
            yield Diagnostic(
                CODE,
                f"{field} is not stated, and the policy's max.{name} is {spell(most.value)} ({_place(most.span)})",
                f"add {f'{outer}: {{{line}}}' if outer else line}, or less",
                why=why,
                span=job.span(outer) if outer else None,
                field=field,
            )
        elif most is not None and asked is not None and asked > most.value:
            yield _above(job, field, name, (asked, most), spell)


def _shm_size(job: JobSpec, shm: SharedMemory) -> Iterator[Diagnostic]:
    most = job.ceiling("shm_size")
    if most is None:
        return
    if job.shm_size is not None:
        if job.shm_size > most.value:
            yield _above(job, "shm_size", "shm_size", (job.shm_size, most), format_size)
    elif shm.need > shm.size.value:
        workers = shm.most_workers
        fewer = f"lower data_loader.num_workers (now {workers}) or batch_size" if workers else "lower shm_extra"
        yield Diagnostic(
            CODE,
            f"the DataLoaders need {human_size(shm.need)} of /dev/shm, and the policy's max.shm_size is "
            f"{format_size(most.value)} ({_place(most.span)})",
            f"{fewer}, or raise max.shm_size in {_place(most.span)}",
            why=WHEN_FULL,
            span=job.span("data_loader"),
            field="data_loader",
        )


def _gpus(job: JobSpec) -> Iterator[Diagnostic]:
    here, everywhere = job.ceiling("gpus"), job.ceiling("total_gpus")
    nodes = job.nodes
    if job.resources.gpus.all:
        for name, most in (("gpus", here), ("total_gpus", everywhere)):
            if most is not None:
                yield _all_gpus(job, name, most)
        return
    extended = [name for name in job.resources.extended if GPU_RESOURCE.fullmatch(name)]
    count = job.resources.gpus.count + sum(job.resources.extended[name] for name in extended)
    field = "resources.gpus" if job.resources.gpus or not extended else f"resources.extended.{extended[0]}"
    if here is not None and count > here.value:
        yield _above(job, field, "gpus", (count, here), str)
    if everywhere is None or count * nodes <= everywhere.value:
        return
    if nodes == 1:
        yield _above(job, field, "total_gpus", (count, everywhere), str)
    else:
        yield Diagnostic(
            CODE,
            f"{field} {count} on {nodes} nodes is {count * nodes} in all, above the policy's max.total_gpus "
            f"{everywhere.value} ({_place(everywhere.span)})",
            f"set {field} to {everywhere.value // nodes}, or torchrun.nnodes to {max(1, everywhere.value // count)}",
            span=job.span(field),
            field=field,
        )


def _all_gpus(job: JobSpec, name: str, most: Limit) -> Diagnostic:
    return Diagnostic(
        CODE,
        f"resources.gpus is all, and the policy's max.{name} is {most.value} ({_place(most.span)})",
        f"set resources.gpus to {most.value}, or fewer",
        why="all is a different number on each machine, so nothing shows that it is within a ceiling",
        span=job.span("resources.gpus"),
        field="resources.gpus",
    )


def _workers(job: JobSpec) -> Iterator[Diagnostic]:
    most = job.ceiling("num_workers")
    said: set[str] = set()
    for loader in job.data_loader.loaders if most is not None else ():
        field = job.loader_field(loader.name, "num_workers")
        if most is not None and (loader.num_workers or 0) > most.value and field not in said:
            said.add(field)
            yield _above(job, field, "num_workers", (loader.num_workers or 0, most), str)
