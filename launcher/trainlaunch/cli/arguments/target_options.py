"""The options that name a target, a cluster and a namespace, and what a job file says of them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

from trainlaunch.cli.arguments.job_arguments import reach_of
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import JobFileRejected, UsageError
from trainlaunch.targets import DEFAULT_TARGET, KUBERNETES, target_record


def add_place_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a cluster and a namespace."""
    parser.add_argument("--context", help="kubernetes: the kubeconfig's context (default: its current one)")
    parser.add_argument("--namespace", help="kubernetes: the namespace (default: the job's, else the context's)")


def named_target(args: argparse.Namespace) -> str | None:
    """Return the target that the options name, None where they name none. Raises UsageError.

    A place in a cluster names the target that has one.
    """
    if args.target:
        refuse_place_elsewhere(args, args.target)
        return str(args.target)
    return KUBERNETES.name if args.context is not None or args.namespace is not None else None


class NamedJob(NamedTuple):
    """What a job file says of where its runs are; `problem` is the code of what keeps it from being a job now, or ``.

    `namespace` is a cluster's, None where it states none.
    """

    name: str
    target: str
    namespace: str | None = None
    problem: str = ""


def job_file(args: argparse.Namespace, *, target: str | None = None) -> NamedJob | None:
    """Return what a named job file says, read for `target` or its own; None for an argument that is not a file.

    A file that has an error by now still names its job. Raises JobFileRejected where nothing in it does.
    """
    path = Path(args.job)
    if path.suffix not in {".yaml", ".yml"} and "/" not in args.job and not _is_file(path):
        return None
    from trainlaunch.policy import read_job

    try:
        job = read_job(path, target=target, use_lock=False, policy=args.policy, reach=reach_of(args))
    except JobFileRejected as rejected:
        from trainlaunch.job.fallback_name import name_and_target

        name, stated = name_and_target(path, reach_of(args))
        if name is None:
            raise
        return NamedJob(name, target or stated or DEFAULT_TARGET, problem=rejected.diagnostics[0].code)
    return NamedJob(job.name, job.target, job.kubernetes.namespace)


def _is_file(path: Path) -> bool:
    """Whether it is one; a name that is longer than any file's is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def refuse_place_elsewhere(args: argparse.Namespace, target: str) -> None:
    """Raise UsageError where --context, --namespace or --kind is given for a target that has no cluster."""
    if not target_record(target).on_this_machine:
        return
    means = {"context": "names a place in a cluster", "namespace": "names a place in a cluster"}
    for option, what in (means | {"kind": "names an object of a cluster"}).items():
        if getattr(args, option, None) is not None:
            message = f"--{option} {what}, and the target is {target}"
            raise UsageError([Diagnostic("TL118", message, f"add `--target kubernetes`, or leave out --{option}")])
