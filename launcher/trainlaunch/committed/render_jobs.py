"""Many jobs, rendered side by side: what one of them can't have stops no other."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.spec import JobSpec
from trainlaunch.policy import read_job, rendered_targets
from trainlaunch.render import render
from trainlaunch.repository.root import Reach, outside
from trainlaunch.rules import plan_and_findings
from trainlaunch.sanitize import shorten
from trainlaunch.targets import is_rendered, target_record
from trainlaunch.verify import verified

JOBS_PER_PROCESS = 40  # fewer than these cost less than the start of a process
JOBS_PER_CHUNK = 16

One = TypeVar("One")
Made = TypeVar("Made")


class RenderOptions(NamedTuple):
    """How jobs are rendered: `targets` None asks for those of the policies in force, else the job's own.

    `folder` takes the place of the policies' path; None leaves that to them.
    """

    targets: tuple[str, ...] | None
    sets: tuple[str, ...]
    policy: Path | None
    reach: Reach
    folder: Path | None


class Rendered(NamedTuple):
    """A job's text for one target and where it belongs; without them, `findings` say why there is none."""

    job: Path
    target: str
    path: Path | None
    text: str
    findings: tuple[Diagnostic, ...]


def render_all(jobs: Sequence[Path], asked: RenderOptions) -> Iterator[tuple[Rendered, ...]]:
    """Yield the texts of each job, in order; many jobs are shared out among the CPUs of this process."""
    rendered = functools.partial(of_job, asked=asked)
    yield from parallel_map(rendered, jobs, per_process=JOBS_PER_PROCESS, chunk=JOBS_PER_CHUNK)


def of_job(job: Path, *, asked: RenderOptions) -> tuple[Rendered, ...]:
    """Return a job's texts, one for each target that is asked for."""
    targets = asked.targets
    if targets is None:
        try:
            targets = rendered_targets(job, sets=asked.sets, policy=asked.policy, reach=asked.reach)
        except JobFileRejected as rejected:
            return (Rendered(job, "", None, "", rejected.diagnostics),)
    return tuple(_of_target(job, target, asked) for target in targets)


def _of_target(job: Path, target: str, asked: RenderOptions) -> Rendered:
    try:
        spec = read_job(job, target=target, sets=asked.sets, policy=asked.policy, reach=asked.reach)
        plan, findings = plan_and_findings(spec)
        path = _path(spec, asked)
        base = path.parent if path else None
        text = "" if path is None else verified(plan, render(plan, base=base), base=base)
    except JobFileRejected as rejected:
        return Rendered(job, target, None, "", rejected.diagnostics)
    warnings = tuple(each for each in findings if each.severity is Severity.WARNING)
    return Rendered(job, plan.target, path, text, warnings if path else (*warnings, _nowhere(job, plan.target)))


def _path(spec: JobSpec, asked: RenderOptions) -> Path | None:
    """Return where a text belongs, None for a target without text and where nothing says so."""
    if not is_rendered(spec.target):
        return None
    file = target_record(spec.target).file_name.format(name=spec.name)
    if asked.folder is not None:
        return asked.folder / file
    if spec.policy is None or spec.policy.render_path is None:
        return None
    pattern, span = spec.policy.render_path
    relative = pattern.format(target=spec.target, name=spec.name, file=file)
    path = Path(os.path.normpath(Path(span.file).parent / relative))
    real = Path(os.path.realpath(path.parent), path.name)
    if not asked.reach.holds(real, Path(span.file)):
        fix = "write a path in the repository, or add `--write-to DIR`"
        raise JobFileRejected([outside(Path(span.file), f"render.path: {shorten(relative)}", asked.reach, fix, span)])
    return path


def _nowhere(job: Path, target: str) -> Diagnostic:
    if not is_rendered(target):
        fix = "name a target that renders a file by --target, or in a policy as render: {targets: [kubernetes]}"
        return Diagnostic("TL401", f"{job}: target {target} renders no file", fix)
    return Diagnostic(
        "TL118",
        f"nothing says where the rendered file of {job} for {target} belongs",
        'add --write-to DIR, or to a policy: render: {path: "{target}/{file}"}',
        why="several jobs are written as files, each to a path of its own",
    )


def parallel_map(
    function: Callable[[One], Made], items: Sequence[One], *, per_process: int, chunk: int
) -> Iterator[Made]:
    """Yield what `function` makes of each item, in order; fewer than twice `per_process` stay in this process.

    It and its results must be picklable. No thread may run yet: the processes are forked.
    """
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    workers = min(cpus, len(items) // per_process)
    if workers < 2:
        yield from map(function, items)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # What the first one imports and compiles, forked children have in memory already.
    yield function(items[0])
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(workers, context, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))
    try:
        yield from pool.map(function, items[1:], chunksize=chunk)
    finally:
        pool.shutdown(cancel_futures=True)
