"""The options that name a cluster and a namespace, and whether a verb is asked about one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.diagnostics import Diagnostic
from launcher.errors import UsageError
from launcher.targets import TARGETS

if TYPE_CHECKING:
    from launcher.job.spec import JobSpec


def add_place_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a cluster and a namespace."""
    parser.add_argument("--context", help="kubernetes: the kubeconfig's context (default: its current one)")
    parser.add_argument("--namespace", help="kubernetes: the namespace (default: the job's, else the context's)")


def means_a_cluster(args: argparse.Namespace) -> bool:
    """Return whether a verb about runs is asked about a cluster: by its options, or by the job file's own target.

    No cluster is contacted where none of them names one. Raises JobFileRejected and UsageError.
    """
    if args.target:
        refuse_place_elsewhere(args, args.target)
        return not TARGETS[args.target].on_this_machine
    if _names_a_place(args):
        return True
    job = job_file(args.job, policy=args.policy) if hasattr(args, "job") else None
    return job is not None and not job.target_record.on_this_machine


def job_file(argument: str, *, policy: Path | None, target: str | None = None) -> JobSpec | None:
    """Return the job of a file, for `target` or its own; None for a bare name. Raises JobFileRejected."""
    path = Path(argument)
    if path.suffix not in {".yaml", ".yml"} and "/" not in argument and not path.is_file():
        return None
    from launcher.policy import read_job

    return read_job(path, target=target, use_lock=False, policy=policy)


def _names_a_place(args: argparse.Namespace) -> bool:
    return args.context is not None or args.namespace is not None


def refuse_place_elsewhere(args: argparse.Namespace, target: str) -> None:
    """Raise UsageError where --context or --namespace is given for a target that has neither."""
    if TARGETS[target].on_this_machine and _names_a_place(args):
        option = "context" if args.context is not None else "namespace"
        message = f"--{option} names a place in a cluster, and the target is {target}"
        raise UsageError([Diagnostic("TL118", message, f"add `--target kubernetes`, or leave out --{option}")])
