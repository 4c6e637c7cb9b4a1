"""`trainlaunch render`: the job as text for one target or all, on stdout or as files."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from trainlaunch.cli.arguments.job_arguments import (
    CONTRACT_EXIT_CODES,
    add_job_arguments,
    add_kind_argument,
    plan_of,
    refuse_folder_elsewhere,
    say_findings,
    say_unsized,
)
from trainlaunch.cli.arguments.run_argument import refuse_place_elsewhere
from trainlaunch.cli.output.streams import Streams
from trainlaunch.cli.output.write_files import write_files
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import JobFileRejected, UsageError
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render
from trainlaunch.repository.regular_files import open_regular
from trainlaunch.targets import KUBERNETES, TARGETS, TEXTS, text_targets

EXAMPLES = (
    "trainlaunch render job.yaml | sh",
    "trainlaunch render job.yaml --target compose | docker compose -f - up",
    "trainlaunch render job.yaml --target all --write-to deploy/",
    "trainlaunch render jobs/ --target all --write-to deploy/ --overwrite",
    "trainlaunch render job.yaml --layout kustomize --write-to base/",
)
EXIT_CODES = CONTRACT_EXIT_CODES
_HEAD = 4096  # bytes: more than the first line of any file of ours


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_job_arguments(parser, targets=(*TARGETS, *TEXTS, "all"), several=True)
    add_kind_argument(parser)
    parser.add_argument("--namespace", help="kubernetes: the namespace (default: kubernetes.namespace, else none)")
    parser.add_argument(
        "--layout",
        choices=("files", "kustomize"),
        default="files",
        help="kustomize: keep a kustomization.yaml in --write-to that names all renderings for kubernetes there",
    )
    parser.add_argument("--write-to", type=Path, metavar="DIR", help="write files into DIR instead of stdout")
    parser.add_argument("--overwrite", action="store_true", help="let --write-to replace files that differ")


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Render, verify, then print or write."""
    from trainlaunch.rules import check_plan
    from trainlaunch.verify import verified

    if args.write_to is not None:
        refuse_folder_elsewhere(args.write_to, args)
    if len(args.jobs) > 1 or Path(args.jobs[0]).is_dir():
        from trainlaunch.cli.verbs.render_many import render_many

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
        f"target {target} has no rendering",
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
