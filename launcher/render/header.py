"""The comment on top of each rendering: where it came from, why the numbers are what they are, what only `up` does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from launcher.plan.launch_plan import Derived, LaunchPlan
from launcher.plan.threads import alike
from launcher.render.container import RENDERING_FORMAT, input_hash
from launcher.render.spelling import has_relative_bind
from launcher.units import format_duration, format_size


def header_lines(plan: LaunchPlan, *, base: Path | None) -> tuple[str, ...]:
    """Return the comment's lines; `base` is the folder that the text will lie in, None where it is read from a pipe.

    No clock and no version of the tool, so that neither a second run nor a release changes a committed file.
    """
    path, name = plan.job.path, Path(plan.job.path).name
    # without the folder that the job file happened to be read from
    numbers = (line.replace(path, name) for line in _numbers(plan))
    return (*_origin(plan, base), *numbers, *_only_up(plan))


def _origin(plan: LaunchPlan, base: Path | None) -> Iterator[str]:
    job_file = Path(plan.job.path).name if base is None else os.path.relpath(plan.job.path, base)
    yield f"Rendered by trainlaunch from {job_file} for {plan.target}: change that file and render again."
    yield f"rendering format {RENDERING_FORMAT}, input {input_hash(plan)}"
    if has_relative_bind(plan) and plan.target != "kubernetes" and base is None:
        yield f"Relative mounts are relative to the folder of {job_file}: run this there."
    if plan.job.image_entrypoint is None:
        yield "image_entrypoint is not stated: an ENTRYPOINT that the image has is not run."


def _numbers(plan: LaunchPlan) -> Iterator[str]:
    yield _number("shm_size", plan.shm.size, format_size(plan.shm.size.value))
    yield _number("num_workers", plan.num_workers, str(plan.num_workers.value))
    yield _number("ranks", plan.ranks, str(plan.ranks.value))
    for threads, names in alike(plan.threads).items():
        yield _number(" ".join(names), threads, str(threads.value))
    working_set = plan.memory.working_set
    yield _number("working set (estimate)", working_set, format_size(working_set.value))


def _number(name: str, derived: Derived, value: str) -> str:
    origin = f" ({derived.origin})" if derived.origin else ""
    return f"{name} {value} = {derived.derivation}{origin}"


def _only_up(plan: LaunchPlan) -> Iterator[str]:
    """Yield what this target has no field for and `trainlaunch up` enforces."""
    job = plan.job
    is_job = plan.target == "kubernetes" and job.kubernetes.kind == "job"
    attempts, ttl = job.max_attempts, job.ttl_after_finished
    if attempts > 1 and not is_job:
        yield f"restart.max_attempts {attempts}: only `trainlaunch up` starts another attempt, this text runs one."
    if job.active_deadline is not None and plan.target != "kubernetes":
        yield f"active_deadline {format_duration(job.active_deadline)}: only `trainlaunch up` ends the job then."
    if ttl is not None and not is_job:
        yield f"ttl_after_finished {format_duration(ttl)}: the next `trainlaunch up` after that removes its run."
