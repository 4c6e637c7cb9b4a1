"""`trainlaunch render`: the job as text for one target or all, on stdout or as files; of many jobs as files alone.

Those of many jobs stand each where the policy or --write-to says.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.job_arguments import (
    CONTRACT_EXIT_CODES,
    KIND_ARGUMENT,
    job_arguments,
    plan_of,
    reach_of,
    refuse_folder_elsewhere,
    refuse_place_elsewhere,
    say_findings,
    say_unsized,
)
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.report import framed
from trainlaunch.cli.output.streams import Streams, style_of
from trainlaunch.cli.output.write_files import remove_temporaries, write_files, write_over
from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.errors import JobFileRejected, UsageError
from trainlaunch.exit_codes import EXIT_FINDINGS
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render
from trainlaunch.repository.regular_files import open_regular
from trainlaunch.targets import KUBERNETES, TARGETS, TEXTS, text_targets
from trainlaunch.units import counted

if TYPE_CHECKING:
    from trainlaunch.committed.render_jobs import Rendered, RenderOptions

_HEAD = 4096  # bytes: more than the first line of any file of ours
USAGE = Usage(
    examples=(
        "trainlaunch render job.yaml | sh",
        "trainlaunch render job.yaml --target compose | docker compose -f - up",
        "trainlaunch render job.yaml --target all --write-to deploy/",
        "trainlaunch render jobs/ --target all --write-to deploy/ --overwrite",
        "trainlaunch render job.yaml --layout kustomize --write-to base/",
    ),
    exit_codes=CONTRACT_EXIT_CODES,
    arguments=(
        *job_arguments(targets=(*TARGETS, *TEXTS, "all"), several=True),
        KIND_ARGUMENT,
        argument("--namespace", help="kubernetes: the namespace (default: kubernetes.namespace, else none)"),
        argument(
            "--layout",
            choices=("files", "kustomize"),
            default="files",
            help="kustomize: keep a kustomization.yaml in --write-to that names all rendered files for kubernetes "
            "there",
        ),
        argument("--write-to", type=Path, metavar="DIR", help="write files into DIR instead of stdout"),
        argument("--overwrite", action="store_true", help="let --write-to replace files that differ"),
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Render, verify, then print or write."""
    from trainlaunch.rules import check_plan
    from trainlaunch.verify import verified

    if args.write_to is not None:
        refuse_folder_elsewhere(args.write_to, args)
    if len(args.jobs) > 1 or Path(args.jobs[0]).is_dir():
        return render_many(args, streams)
    args.job = args.jobs[0]
    if args.namespace:
        args.sets = [*args.sets, f"kubernetes.namespace={args.namespace}"]
    if args.layout == "kustomize":
        _check_layout(args)
    targets = text_targets() if args.target == "all" else (args.target,)  # None: the job's own
    plans = _plans(args, targets)
    if args.target != "all":
        refuse_place_elsewhere(args, plans[0].target)
    for plan in plans:
        if not plan.target_record.has_text:
            raise UsageError([_no_rendering(args.job, plan.target)])
    say_findings(dict.fromkeys(finding for plan in plans for finding in check_plan(plan)), streams)
    say_unsized(next((plan for plan in plans if plan.shm.unsized), plans[0]), streams)
    files: dict[str, str] = {}
    for plan in plans:
        text = verified(plan, render(plan, base=args.write_to), base=args.write_to)
        files[plan.target_record.file_name.format(name=args.name or plan.job.name)] = text
    if args.write_to is None:
        for name, text in files.items():
            streams.result(f"# ===== {name} =====\n" * (len(files) > 1) + text)
        return 0
    _write(args, files, streams)
    return 0


def _write(args: argparse.Namespace, files: dict[str, str], streams: Streams) -> None:
    from trainlaunch.render.kubernetes import KUSTOMIZATION, is_own_kustomization, kustomization_text, resources_in

    folder: Path = args.write_to
    kept = folder / KUSTOMIZATION
    replaceable: tuple[str, ...] = ()
    if args.layout == "kustomize":
        files[KUSTOMIZATION] = kustomization_text([*resources_in(folder), *files])
        if kept.is_file() and is_own_kustomization(kept, _head(kept)):
            replaceable = (KUSTOMIZATION,)
    for path in write_files(folder, files, overwrite=args.overwrite, replaceable=replaceable):
        streams.say(f"wrote {path}")


def _keep_kustomizations(folders: Iterable[Path], streams: Streams) -> None:
    """Write the kustomization.yaml of directories with Kubernetes manifests. Raises UsageError for a foreign one."""
    from trainlaunch.render.kubernetes import KUSTOMIZATION, is_own_kustomization, kustomization_text, resources_in

    for folder in sorted(folders):
        kept = folder / KUSTOMIZATION
        replaceable = (KUSTOMIZATION,) if kept.is_file() and is_own_kustomization(kept, _head(kept)) else ()
        files = {KUSTOMIZATION: kustomization_text(resources_in(folder))}
        for path in write_files(folder, files, overwrite=False, replaceable=replaceable):
            streams.say(f"wrote {path}")


def _head(path: Path) -> str:
    with open_regular(path) as file:
        return file.read(_HEAD).decode(errors="replace")


def _check_layout(args: argparse.Namespace) -> None:
    """Take target kubernetes, which the layout is for. Raises UsageError for another target and without a folder."""
    if args.target not in {None, KUBERNETES.name}:
        message = f"--layout kustomize is for target kubernetes, not {args.target}"
        raise UsageError([Diagnostic("TL118", message, "drop --target, or --layout")])
    if args.write_to is None:
        message = "--layout kustomize keeps a folder, and --write-to names none"
        raise UsageError([Diagnostic("TL118", message, "add --write-to DIR")])
    args.target = KUBERNETES.name


def _no_rendering(job: str, target: str) -> Diagnostic:
    return Diagnostic(
        "TL401",
        f"target {target} renders no file",
        f"run `trainlaunch up {job} --target {target}`, or render it with --target {' or '.join(text_targets())}",
        why="it starts the command on this host itself, after the same preflight; there is no file that says so",
    )


def _plans(args: argparse.Namespace, targets: Iterable[str | None]) -> list[LaunchPlan]:
    """Return the plan of each target. Raises JobFileRejected with the errors of all, each once."""
    plans: list[LaunchPlan] = []
    errors: list[Diagnostic] = []
    for target in targets:
        try:
            plans.append(plan_of(args, target=target))
        except JobFileRejected as rejected:
            errors += rejected.diagnostics
    if errors:
        raise JobFileRejected(dict.fromkeys(errors))
    return plans


_EVERY = 50  # jobs between two numbers on a terminal


def render_many(args: argparse.Namespace, streams: Streams) -> int:
    """Write the rendered file of each job; an error in one stops no other, and makes the exit code 1 at the end."""
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
    if args.layout == "kustomize":
        _keep_kustomizations({path.parent for path in taken}, streams)
    words = {"written": "written", "current": "as they were", "refused": "not rendered"}
    told = ", ".join(f"{counts[each]} {word}" for each, word in words.items() if counts[each])
    streams.say(f"{counted(len(jobs), 'job')}, {counted(sum(counts.values()), 'rendered file')}: {told}")
    return EXIT_FINDINGS if counts["refused"] else 0


def _refuse_options(args: argparse.Namespace) -> None:
    if args.name:
        message = f"--name is for one job file, and {' '.join(map(str, args.jobs))} may have several"
        raise UsageError([Diagnostic("TL118", message, "drop --name, or name one job file")])
    if args.layout == "kustomize":
        _check_layout(args)


def _jobs(args: argparse.Namespace) -> list[Path]:
    from trainlaunch.committed.job_files import find_jobs

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
    from trainlaunch.committed.render_jobs import RenderOptions

    targets = text_targets() if args.target == "all" else (args.target,) if args.target else None
    sets = [*args.sets]
    sets += [f"kubernetes.namespace={args.namespace}"] * bool(args.namespace)
    sets += [f"kubernetes.kind={args.kind}"] * bool(args.kind)
    return RenderOptions(targets, tuple(sets), args.policy, reach_of(args), args.write_to)


def _with_progress(jobs: Sequence[Path], asked: RenderOptions, streams: Streams) -> Iterator[tuple[Rendered, ...]]:
    """Yield the texts of each job; on a terminal a line counts them and is gone at the end."""
    from trainlaunch.committed.render_jobs import render_all

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
