"""`trainlaunch init`: a job file from flags, a script that is never run, or a text that starts a job now."""

from __future__ import annotations

import argparse
import functools
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

from trainlaunch.cli.arguments.job_arguments import (
    POLICY_ARGUMENTS,
    is_handed,
    open_named,
    reach_of,
    refuse_folder_elsewhere,
    say_findings,
    unreadable,
)
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.streams import Streams
from trainlaunch.cli.output.write_files import write_files
from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.errors import JobFileRejected, UsageError
from trainlaunch.repository.root import ITS_OWN, Reach, link_outside
from trainlaunch.script.packages import Start
from trainlaunch.yamltree.text_file import read_at_most

USAGE = Usage(
    examples=(
        "trainlaunch init train.py --gpus 1 --cpus 8 --memory 32Gi --write-to job.yaml",
        "trainlaunch init --name resnet50 --image registry.example/trainer:1.4",
        "trainlaunch init --from compose.yaml --pick train --write-to job.yaml",
        "kubectl get job train -o yaml | trainlaunch init --from -",
    ),
    exit_codes="0 fine, 1 a flag's value or the file can't be used, 2 usage, 70 an internal error, 130 interrupted",
    arguments=(
        argument("script", metavar="SCRIPT", nargs="?", help="the training script, like train.py"),
        argument(
            "--from",
            dest="source",
            metavar="FILE",
            help="convert what FILE starts: a docker or podman run line, a Compose file, a Kubernetes manifest, a "
            "devcontainer.json, a GitHub workflow, or a rendered file; - is stdin. Or the id of a run of "
            "`trainlaunch run`",
        ),
        argument("--pick", metavar="NAME", help="which container of --from, where it starts several"),
        argument("--name", help="the job's name (default: the script's, or its folder's)"),
        argument("--image", help="the image, with a tag or digest"),
        argument("--cpus", help="limit, like 8 or 1.5"),
        argument("--memory", help="limit with /dev/shm included, like 32Gi"),
        argument("--gpus", help="a count, all, or ids like 0,1"),
        *POLICY_ARGUMENTS,
        argument("--write-to", type=Path, metavar="FILE", help="write FILE instead of stdout; never over one"),
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Read, draft, plan the draft, then print or write it."""
    target: Path | None = args.write_to
    if target is not None:
        refuse_folder_elsewhere(target.parent, args)
        if os.path.lexists(target):
            raise UsageError([_exists(target)])
    if args.pick is not None and args.source is None:
        raise UsageError(
            [Diagnostic("TL118", "--pick names a container of --from, which is not given", "add --from FILE")]
        )
    _refuse_link(args.source or args.script or "-", args)
    text = _of_run(args.source) if args.source else None
    text = text or (_taken_over(args, streams) if args.source is not None else _drafted(args))
    if target is None:
        streams.result(text)
    else:
        write_files(target.parent, {target.name: text}, overwrite=False)
        streams.say(f"wrote {target}; `trainlaunch plan {shlex.quote(str(target))}` shows what follows from it")
    say_findings(_against_policy(text, args, target or Path("job.yaml")), streams)
    return 0


def _refuse_link(named: str, args: argparse.Namespace) -> None:
    """Raise UsageError for a text that is a link out of its repository: mistakes are shown with their lines."""
    led_away = link_outside(Path(named), reach_of(args), "name the file itself")
    if led_away:
        raise UsageError([led_away])


def _of_run(source: str) -> str | None:
    """Return the job file of a run that `run` started without one; None where --from names something else."""
    if not re.fullmatch(r"[0-9a-f]{8}", source) or os.path.lexists(source):
        return None
    from trainlaunch.run.base.private_files import UnusableState
    from trainlaunch.run.run_record import RunRecord

    try:
        text = RunRecord(source).text()
    except UnusableState as cause:
        text, why = "", str(cause)
    else:
        why = "a run that `trainlaunch run` started on this host keeps one, for 30 days"
    if not text:
        fix = "name a run of `trainlaunch ps --target local`, or a file"
        raise UsageError([Diagnostic("TL118", f"--from: run {source} has no job file", fix, why=why)])
    return text


def _drafted(args: argparse.Namespace) -> str:
    """Return a draft from flags, and from the script where one is named."""
    from trainlaunch.init import DraftOptions, draft, job_name, read_script

    target: Path | None = args.write_to
    script = Path(args.script) if args.script else None
    facts = read_script(script) if script else None
    folder = target.parent if target else Path()
    source, program = _seen_from(folder, script, facts.start) if script and facts else (".", "train.py")
    asked = DraftOptions(
        name=args.name or job_name(script),
        image=args.image,
        cpus=args.cpus,
        memory=args.memory,
        gpus=args.gpus,
        source=source,
        program=program,
        folder=facts.start.folder if facts and facts.start else "",
    )
    text = draft(asked, facts)
    _plan(text)
    return text


def _taken_over(args: argparse.Namespace, streams: Streams) -> str:
    """Return the job file of another text's container, and say what of it is not in the file."""
    from trainlaunch.init.takeover import take_over

    if args.script:
        message = f"--from takes {args.source} over, and {args.script} is another source"
        raise UsageError([Diagnostic("TL118", message, "leave one of them out")])
    names = ("name", "image", "cpus", "memory", "gpus")
    stated = {name: str(value) for name in names if (value := getattr(args, name)) is not None}
    folder = args.write_to.parent if args.write_to else Path()
    name = "-" if is_handed(args.source) else args.source
    taken = take_over(_bytes_of(args.source), name, pick=args.pick, folder=folder, stated=stated)
    say_findings(taken.notes, streams)
    return taken.text


def _bytes_of(source: str) -> bytes:
    """Return what a file holds, or what a shell opened. Raises UsageError where it can't be read."""
    from trainlaunch.lint.linter import MAX_BYTES

    try:
        with open_named(source, source) as file:
            return read_at_most(file, MAX_BYTES + 1)
    except OSError as cause:
        raise unreadable(source, cause) from cause


def _seen_from(folder: Path, script: Path, start: Start | None) -> tuple[str, str]:
    """Return the folder to mount, relative to the job file's, and what Python runs there: a file, or `-m MODULE`."""
    if start is not None:
        source = Path(os.path.relpath(start.root, folder.resolve())).as_posix()
        file = script.resolve().relative_to(start.root / start.folder).as_posix()
        return source, f"-m {start.module}" if start.module else file
    relative = Path(os.path.relpath(script, folder))
    if ".." not in relative.parts:
        return ".", relative.as_posix()
    return relative.parent.as_posix(), script.name


def _plan(text: str, *, policy: Path | None = None, lying_at: Path | None = None, reach: Reach = ITS_OWN) -> None:
    """Raise JobFileRejected where the draft's values, which are the flags', can't be; its lines are nobody's yet.

    It is planned under `policy`, or the policies of a job file at `lying_at`; under none where both are None.
    """
    from trainlaunch import policy as policies
    from trainlaunch.job.reading.job_reader import read_job
    from trainlaunch.rules import plan_job

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            ruled = policy is not None or lying_at is not None
            read = functools.partial(policies.read_job, policy=policy, lying_at=lying_at, reach=reach)
            plan_job((read if ruled else read_job)(path))
        except JobFileRejected as rejected:
            found = (each._replace(span=None) if _is(each, path) else each for each in rejected.diagnostics)
            raise JobFileRejected(found) from rejected


def _is(diagnostic: Diagnostic, path: Path) -> bool:
    return diagnostic.span is not None and diagnostic.span.file == str(path)


def _against_policy(text: str, args: argparse.Namespace, target: Path) -> Iterator[Diagnostic]:
    """Yield a warning for each demand of its policy that the draft, lying at `target`, doesn't meet yet."""
    try:
        _plan(text, policy=args.policy, lying_at=target, reach=reach_of(args))
    except JobFileRejected as rejected:
        for each in rejected.diagnostics:
            yield each._replace(severity=Severity.WARNING)


def _exists(path: Path) -> Diagnostic:
    return Diagnostic(
        "TL115",
        f"{path} exists",
        "give --write-to another file, or leave it out and compare what is printed",
        why="a job file that was worked on can't be drafted again",
    )
