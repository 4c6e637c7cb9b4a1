"""What several commands share: the job argument, its options and the plan that they give, and files named by arguments.

A named file is opened without waiting for what may never come.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

from trainlaunch.cli.arguments.verb_table import Argument, argument
from trainlaunch.cli.output.report import framed
from trainlaunch.cli.output.streams import Streams, style_of
from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.errors import UsageError
from trainlaunch.job.spec import JobSpec
from trainlaunch.kinds import KINDS
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.lock_overrides import measuring_command
from trainlaunch.repository.regular_files import is_of_shell, open_given
from trainlaunch.repository.root import Reach, outside
from trainlaunch.targets import TARGETS, target_record
from trainlaunch.units import human_size

CONTRACT_EXIT_CODES = "0 fine, 1 a bad job file, 2 usage, 3 target unavailable, 70 an internal error, 130 interrupted"


POLICY_ARGUMENTS = (  # of every command that reads a job file
    argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="the only policy (default: the job's policy, and every trainlaunch-policy.yaml upward in its repository)",
    ),
    argument(
        "--allow-outside",
        action="append",
        type=Path,
        default=[],
        metavar="DIR",
        help="let files of a repository name others in DIR too, policies and code among them; repeatable",
    ),
)
KIND_ARGUMENT = argument("--kind", choices=KINDS, help="the Kubernetes kind (default: kubernetes.kind, else job)")
JOB_OUTPUT_ARGUMENT = argument(
    "-o", "--output", choices=("text", "json"), default="text", help="json: one document on stdout, the job on stderr"
)
OUTPUT_ARGUMENT = argument("-o", "--output", choices=("text", "json"), default="text", help="format of the result")


USUAL_JOB = "job.yaml"
_SHORT_TARGETS = {"k8s": "kubernetes", "kube": "kubernetes", "host": "local", "podman": "docker"}


def target_name(typed: str) -> str:
    """Return the target that a word of --target names: k8s is kubernetes.

    Podman runs what Docker does: its name also chooses the engine, for this process and the supervisors that it starts.
    """
    if typed == "podman":
        os.environ["TRAINLAUNCH_ENGINE"] = typed
    return _SHORT_TARGETS.get(typed, typed)


def job_arguments(*, targets: Sequence[str] = (), several: bool = False, usual: bool = False) -> tuple[Argument, ...]:
    """Return the job file, or with `several` files and folders, and the options of every command that plans it.

    `targets` are what --target takes, for a command that takes more than the targets of `up`. `usual`: without a job
    it is the one of this folder.
    """
    job = argument("job", metavar="JOB", help="the job file, like job.yaml")
    if usual:
        told = f"the job file (default: ./{USUAL_JOB})"
        job = argument("job", metavar="JOB", nargs="?", default=USUAL_JOB, help=told)
    jobs = argument("jobs", nargs="+", metavar="JOB", help="job files, or folders of some")
    named = f": {', '.join(targets)}" if targets else ""
    return (
        jobs if several else job,
        argument(
            "--target",
            type=target_name,
            choices=targets or tuple(TARGETS),
            metavar="TARGET" if targets else None,
            help=f"where it runs{named} (default: the job's target, else docker)",
        ),
        argument(
            "--set",
            action="append",
            default=[],
            dest="sets",
            metavar="FIELD=VALUE",
            help="override one field, a dotted path and a YAML value; repeatable, last in the precedence",
        ),
        *POLICY_ARGUMENTS,
        argument("--name", help="fix the name; a Kubernetes object's carries a hash otherwise"),
    )


def reach_of(args: argparse.Namespace) -> Reach:
    """Return what the arguments let be read: the folders that are named, and those of --allow-outside."""
    named = (*map(Path, getattr(args, "jobs", ())), *getattr(args, "paths", ()), getattr(args, "folder", None))
    return Reach(tuple(each for each in named if each and each.is_dir()), tuple(args.allow_outside))


def refuse_folder_elsewhere(folder: Path, args: argparse.Namespace) -> None:
    """Raise UsageError for a folder to write to that is a link out of its repository."""
    file, reach = folder / "file", reach_of(args)
    if not reach.holds(file, file):
        raise UsageError([outside(file, f"{folder}, a link,", reach, "name the folder itself, or another one")])


def refuse_place_elsewhere(args: argparse.Namespace, target: str) -> None:
    """Raise UsageError where --context, --namespace or --kind is given for a target that has no cluster."""
    if not target_record(target).on_this_machine:
        return
    means = {"context": "names a place in a cluster", "namespace": "names a place in a cluster"}
    for option, what in (means | {"kind": "names an object of a cluster"}).items():
        if getattr(args, option, None) is not None:
            message = f"--{option} {what}, and the target is {target}"
            raise UsageError([Diagnostic("TL118", message, f"add `--target kubernetes`, or leave out --{option}")])


def job_of(args: argparse.Namespace, *, target: str | None = None) -> JobSpec:
    """Return the job that the arguments name, for `target` or their own. Raises JobFileRejected."""
    from trainlaunch.policy import read_job

    kind = getattr(args, "kind", None)  # of the commands that have the option
    sets = [*args.sets, f"kubernetes.kind={kind}"] if kind else args.sets
    return read_job(Path(args.job), target=target or args.target, sets=sets, policy=args.policy, reach=reach_of(args))


def plan_of(args: argparse.Namespace, *, target: str | None = None) -> LaunchPlan:
    """Return the plan that the arguments ask for. Raises JobFileRejected and UsageError."""
    from trainlaunch.rules import plan_job

    return plan_job(job_of(args, target=target), name=_checked_name(args.name))


def _checked_name(name: str | None) -> str | None:
    if name is None or re.fullmatch(r"[a-z0-9][-a-z0-9]{0,61}[a-z0-9]", name):
        return name
    raise UsageError(
        [
            Diagnostic(
                "TL114",
                f"--name {name!r} can't be a name on every target",
                "use lower-case letters, digits and '-', 2 to 63, with a letter or digit at both ends",
                why="the name becomes a container's, a service's and a pod's name; docker wants two characters",
            )
        ]
    )


def say_unsized(plan: LaunchPlan, streams: Streams) -> None:
    """Say once how to size a job of which nobody set or measured what its batches take."""
    if not plan.shm.unsized:
        return
    from trainlaunch.rules.sources.deciding_workers import runs_no_worker  # which reads the script

    if runs_no_worker(plan):
        return
    size = human_size(plan.shm.size.value)
    streams.say(
        f"trainlaunch: /dev/shm size unknown (no sample), using {size}: "
        f"`{measuring_command('probe', plan.job)}` measures it"
    )


def say_findings(findings: Iterable[Diagnostic], streams: Streams, *, least: Severity = Severity.WARNING) -> None:
    """Print findings to stderr: warnings, and infos where `least` asks for them."""
    shown = {Severity.ERROR, Severity.WARNING} | ({Severity.INFO} if least is Severity.INFO else set())
    for finding in findings:
        if finding.severity in shown:
            streams.say(framed(finding, style_of(streams.err)))


STDIN = frozenset({"-", "/dev/stdin"})
_FIX = "name a file that is there and that this user can read, or - for stdin"


def is_handed(name: str) -> bool:
    """Whether a name stands for what the caller's shell opened, stdin included, and not for a file."""
    return name in STDIN or is_of_shell(Path(name))


def open_named(name: str, what: str) -> AbstractContextManager[BinaryIO]:
    """Return a file, or what a shell opened, to read its bytes; `what` calls it in errors, like `--log FILE`.

    Raises UsageError where it can't be opened, and for what may have no end: a FIFO that nobody may write to, a device.
    """
    try:
        return nullcontext(_stdin()) if name in STDIN else open_given(Path(name))
    except (OSError, ValueError) as cause:
        raise unreadable(what, cause) from cause


def _stdin() -> BinaryIO:
    if sys.stdin is None:  # Python has none where the caller closed it, as some service managers do
        raise OSError(errno.EBADF, "it is closed")
    return sys.stdin.buffer


def unreadable(what: str, cause: Exception) -> UsageError:
    """Return the error for a file that can't be opened, or read further."""
    reason = getattr(cause, "strerror", None) or cause
    return UsageError([Diagnostic("TL118", f"{what} can't be read: {reason}", _FIX)])
