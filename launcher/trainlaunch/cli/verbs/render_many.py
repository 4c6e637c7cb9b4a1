"""`trainlaunch render` of many jobs: files, each where the policy or --write-to says."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainlaunch.cli.arguments.job_arguments import reach_of
from trainlaunch.cli.output.report import framed
from trainlaunch.cli.output.streams import Streams, style_of
from trainlaunch.cli.output.write_files import remove_temporaries, write_over
from trainlaunch.committed.job_files import find_jobs
from trainlaunch.committed.render_jobs import Rendered, RenderOptions, render_all
from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.errors import UsageError
from trainlaunch.exit_codes import EXIT_FINDINGS
from trainlaunch.targets import text_targets

_EVERY = 50  # jobs between two numbers on a terminal


def render_many(args: argparse.Namespace, streams: Streams) -> int:
    """Write the rendering of each job; what one can't have stops no other, and is an exit code of 1 at the end."""
    _refuse_options(args)
    jobs = _jobs(args)
    counts: Counter[str] = Counter()
    taken: dict[Path, Path] = {}
    said: dict[Diagnostic, None] = {}
    for rendered in _with_progress(jobs, _asked(args), streams):
        for each in rendered:
            status, findings = _written(each, taken, overwrite=args.overwrite)
            counts[status] += 1
            for finding in (each for each in findings if each not in said):
                said[finding] = None
                streams.say(framed(finding, style_of(streams.err)))
    for folder in {path.parent for path in taken}:
        remove_temporaries(folder)
    words = {"written": "written", "current": "as they were", "refused": "not rendered"}
    told = ", ".join(f"{counts[each]} {word}" for each, word in words.items() if counts[each])
    streams.say(f"{len(jobs)} jobs, {sum(counts.values())} renderings: {told}")
    return EXIT_FINDINGS if counts["refused"] else 0


def _refuse_options(args: argparse.Namespace) -> None:
    for option, stated in (("--name", args.name), ("--layout kustomize", args.layout != "files")):
        if stated:
            message = f"{option} is for one job, and {len(args.jobs)} files or folders are named"
            raise UsageError([Diagnostic("TL118", message, f"drop {option}, or name one job file")])


def _jobs(args: argparse.Namespace) -> list[Path]:
    try:
        jobs = find_jobs(map(Path, args.jobs), reach=reach_of(args))
    except OSError as cause:
        message = f"{cause.filename} can't be read: {cause.strerror}"
        raise UsageError([Diagnostic("TL101", message, "name folders that you can read")]) from cause
    if not jobs:
        where = ", ".join(args.jobs)
        fix = "name the job files themselves; in folders, YAML files with a job's own keys are taken for some"
        raise UsageError([Diagnostic("TL101", f"no job file is in {where}", fix)])
    return jobs


def _asked(args: argparse.Namespace) -> RenderOptions:
    targets = text_targets() if args.target == "all" else (args.target,) if args.target else None
    sets = [*args.sets]
    sets += [f"kubernetes.namespace={args.namespace}"] * bool(args.namespace)
    sets += [f"kubernetes.kind={args.kind}"] * bool(args.kind)
    return RenderOptions(targets, tuple(sets), args.policy, reach_of(args), args.write_to)


def _with_progress(jobs: Sequence[Path], asked: RenderOptions, streams: Streams) -> Iterator[tuple[Rendered, ...]]:
    """Yield the texts of each job; on a terminal a line counts them and is gone at the end."""
    terminal = streams.err.isatty() and len(jobs) >= _EVERY
    for number, rendered in enumerate(render_all(jobs, asked), start=1):
        yield rendered
        if terminal and number % _EVERY == 0:
            streams.err.write(f"\r{number} of {len(jobs)} jobs")
            streams.err.flush()
    if terminal:
        streams.err.write("\r\033[K")
        streams.err.flush()


def _written(each: Rendered, taken: dict[Path, Path], *, overwrite: bool) -> tuple[str, tuple[Diagnostic, ...]]:
    """Write one text; return what became of it, and what is to be said."""
    errors = [finding for finding in each.findings if finding.severity is Severity.ERROR]
    if each.path is None or errors:
        return "refused", each.findings
    other = taken.setdefault(each.path, each.job)
    if other != each.job:
        message = f"{each.job} and {other} would both be rendered to {each.path}"
        fix = "give one of them another name, or add {target} or a folder of their own to the path"
        return "refused", (*each.findings, Diagnostic("TL115", message, fix))
    try:
        changed = write_over(each.path, each.text, overwrite=overwrite)
    except UsageError as refused:
        return "refused", (*each.findings, *refused.diagnostics)
    return "written" if changed else "current", each.findings
