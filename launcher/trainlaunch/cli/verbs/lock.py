"""`trainlaunch lock`: pin what the image names of job files stand for, each in a file beside its own."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.job_arguments import POLICY_ARGUMENTS, reach_of
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.report import framed
from trainlaunch.cli.output.streams import Streams, style_of
from trainlaunch.cli.output.write_files import replace_file
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError
from trainlaunch.exit_codes import EXIT_FINDINGS

if TYPE_CHECKING:
    from trainlaunch.committed.lock_writer import ImageFacts

USAGE = Usage(
    examples=(
        "trainlaunch lock job.yaml            # writes job.lock.yaml",
        "trainlaunch lock jobs/*.yaml --check # in CI, after `docker pull`",
    ),
    exit_codes=(
        "0 written or current, 1 a bad job file or a stale lock (--check), 2 usage, 3 no engine or it lacks "
        "the image, 70 an internal error, 130 interrupted"
    ),
    arguments=(
        argument("job", metavar="JOB", type=Path, nargs="+", help="a job file, like job.yaml; several are all locked"),
        *POLICY_ARGUMENTS,
        argument("--check", action="store_true", help="write nothing; exit 1 where the lock would change"),
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Ask the engine for all jobs, then write each one's lock or compare it."""
    from trainlaunch.committed.lock_writer import known_facts
    from trainlaunch.job.reading.lock_reader import lock_elsewhere
    from trainlaunch.policy import stated_images
    from trainlaunch.run.docker.client import Engine, find_endpoint
    from trainlaunch.run.docker.image import facts_of

    jobs = list(dict.fromkeys(args.job))
    _refuse_a_shared_lock(jobs)
    elsewhere = [each for job in jobs if (each := lock_elsewhere(job, reach_of(args)))]
    if elsewhere:
        raise UsageError(elsewhere)
    images = {job: stated_images(job, policy=args.policy, reach=reach_of(args)) for job in jobs}
    with contextlib.closing(Engine(find_endpoint())) as engine:
        facts = {  # before anything is written
            job: facts_of(engine, images[job], known_facts(job), ask=not args.check) for job in jobs
        }
    return max((_locked(job, facts[job], streams, check=args.check) for job in jobs), default=0)


def _refuse_a_shared_lock(jobs: list[Path]) -> None:
    """Raise UsageError where two job files would have the same lock, as job.yaml and job.yml have."""
    from trainlaunch.job.reading.lock_reader import lock_path

    by_lock: dict[Path, Path] = {}
    for job in jobs:
        first = by_lock.setdefault(lock_path(job).absolute(), job)
        if first != job:
            raise UsageError([_shared(first, job, lock_path(job))])


def _locked(job: Path, facts: Mapping[str, ImageFacts], streams: Streams, *, check: bool) -> int:
    """Write or compare the lock of one job; its parts that others wrote stay as they are."""
    from trainlaunch.committed.lock_writer import lock_text
    from trainlaunch.job.reading.lock_reader import lock_path, part_texts

    path = lock_path(job)
    current = path.read_bytes() if path.is_file() else None
    had = "" if current is None else current.decode(errors="replace")
    others = part_texts(had, path) if had else {}
    text = lock_text(job, facts, others)
    if current == text.encode():
        streams.say(f"{path} is current: {', '.join(facts)}")
        return 0
    if not check:
        if others is None:
            streams.say(f"{path} could not be read as a lock: only its images are written again")
        replace_file(path, text)
        streams.say(f"wrote {path}: {', '.join(facts)}")
        return 0
    lines = difflib.unified_diff(list(io.StringIO(had)), list(io.StringIO(text)), str(path), f"{path} (engine)")
    streams.result("".join(line if line.endswith("\n") else f"{line}\n" for line in lines))
    streams.say(framed(_stale(job, path, missing=current is None), style_of(streams.err)))
    return EXIT_FINDINGS


def _shared(first: Path, second: Path, lock: Path) -> Diagnostic:
    return Diagnostic(
        "TL128",
        f"{first} and {second} have the same lock, {lock}",
        f"rename one of them, then run `trainlaunch lock {first} NEW_NAME.yaml`",
        why="a lock is named after its job file without the ending, so each would replace the other's",
    )


def _stale(job: Path, path: Path, *, missing: bool) -> Diagnostic:
    return Diagnostic(
        "TL127",
        f"{path} does not exist" if missing else f"{path} is not what this engine says of the images of {job}",
        f"run `trainlaunch lock {job}`, and review what it changes",
        why="" if missing else "a tag was moved, the job's images were changed, or the lock was",
    )
