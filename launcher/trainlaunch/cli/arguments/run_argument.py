"""The argument RUN of the verbs about runs: what is asked about, and the run on this machine that is meant."""

from __future__ import annotations

import argparse
import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.job_arguments import add_policy_argument
from trainlaunch.cli.arguments.target_options import add_place_arguments, job_file
from trainlaunch.cli.output.streams import Streams, standard_streams
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.run_query import ANYONE, C, Candidate, RunQuery, check_argument, matching, removable
from trainlaunch.targets import TARGETS

if TYPE_CHECKING:
    from trainlaunch.run.base.backend import Backend
    from trainlaunch.run.machine_runs import Machine, MachineRun

LISTED_SECONDS = 1.0  # an engine's list has whole seconds
RUN_TARGETS = tuple(each.name for each in TARGETS.values() if each.on_this_machine)
CLUSTER_TARGETS = tuple(each.name for each in TARGETS.values() if not each.on_this_machine)


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a run, and whose runs and which targets are looked at."""
    meaning = "a job file, a run's name, a job's name, or the first 4 or more digits of a run's id"
    parser.add_argument("job", metavar="RUN", help=meaning)
    add_policy_argument(parser)
    add_owner_argument(parser)
    add_run_target_argument(parser, "where it is found, clusters apart")


def add_owner_argument(parser: argparse.ArgumentParser, *, default: str = "yours") -> None:
    """Add the option that names whose runs are meant."""
    parser.add_argument("--owner", metavar="NAME", help=f"whose runs, `{ANYONE}` for those of all (default: {default})")


def add_run_target_argument(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the option that names a target which keeps runs; `default` says what is taken without it."""
    targets = (*RUN_TARGETS, *CLUSTER_TARGETS)
    parser.add_argument("--target", choices=targets, help=f"where the run is (default: {default})")
    add_place_arguments(parser)


@functools.cache
def say_once(text: str) -> None:
    """Say something about the engine or a run that several targets notice."""
    standard_streams().say(text if text.startswith("trainlaunch: ") else f"trainlaunch: {text}")


def asked_run(args: argparse.Namespace, *, target: str | None) -> RunQuery:
    """Return what RUN means by itself, a file read for `target`. Raises JobFileRejected and UsageError."""
    job = job_file(args, target=target)
    if job is None:
        check_argument(args.job)
        return RunQuery(args.job)
    if job.problem:
        say_once(f"{args.job} is not a job that can run ({job.problem}); its runs are those of job {job.name}")
    return RunQuery(args.job, job.name)


def targets_of(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the targets on this machine whose runs are looked at: the asked one, the file's own local one, or all."""
    if args.target:
        return (args.target,)
    job = job_file(args)
    if job is not None and not TARGETS[job.target].starts_container:
        return (job.target,)  # its runs need no engine
    return tuple(reversed(RUN_TARGETS))


@contextlib.contextmanager
def found_runs(
    args: argparse.Namespace, *, measuring: bool = False
) -> Iterator[tuple[Machine, tuple[MachineRun, ...]]]:
    """Give the runs that RUN and --owner mean, newest first, and the backends that hold them.

    With `measuring` those of `probe` and `tune` count as runs of the job that they measure.

    Raises UsageError, JobFileRejected, and TargetUnavailable (TL510) where there are none.
    """
    from trainlaunch.run.machine_runs import machine

    asked = asked_run(args, target=args.target)
    with machine(targets_of(args), say_once) as places:
        known = places.runs()
        owned = owned_by(args.owner, known)
        found = matching(owned, asked)
        if measuring:
            name = asked.job or asked.text
            found = tuple(each for each in owned if each in found or each.measures == name)
        if not found:
            places.raise_unreachable()
            raise TargetUnavailable([_none_found(places, asked, known, args.owner)])
        yield places, found


@contextlib.contextmanager
def newest_run(args: argparse.Namespace, streams: Streams) -> Iterator[tuple[Backend, MachineRun]]:
    """Give the newest run of the caller's that RUN means, and its backend; names it where RUN means several."""
    with found_runs(args) as (places, found):
        allowed = [each for each in found if args.owner or each.is_mine]
        if not allowed:
            raise TargetUnavailable([_others_only(found, args.job)])
        latest = [each for each in allowed if each.created > allowed[0].created - LISTED_SECONDS]
        of_targets = {each.target: each for each in reversed(latest)}  # a target's own order is right
        run = max(places.described([*of_targets.values()]), key=lambda each: each.created, default=allowed[0])
        if len(found) > 1:
            streams.say(f"trainlaunch: run {run.id} of job {run.job}, the newest of {len(found)}, on {run.target}")
        yield places.backend(run.target), run


def owned_by(owner: str | None, runs: Sequence[C]) -> Sequence[C]:
    """Return the runs of an owner; of all for `any`, and where nobody is named: then others' are told apart later."""
    return runs if owner in {None, ANYONE} else [each for each in runs if each.owner == owner]


def chosen_for_removal(args: argparse.Namespace, found: Sequence[C]) -> Sequence[C]:
    """Return the runs that `down` takes. Raises UsageError (TL119), and TargetUnavailable (TL510) where all are alien.

    With --owner those of the named one count as the caller's.
    """
    if args.all:
        taken = [each for each in found if args.owner or each.is_mine]
        if not taken:
            raise TargetUnavailable([_others_only(found, args.job)])
        return taken
    return [removable(found, args.job, anyones=args.owner is not None)]


def _none_found(places: Machine, asked: RunQuery, known: Sequence[MachineRun], owner: str | None) -> Diagnostic:
    from trainlaunch.run.base.wording import no_such_run

    fix = "start it with `trainlaunch up JOB`, or list what there is with `trainlaunch ps`"
    name = asked.job or asked.text
    return no_such_run(places.places, name, {each.job for each in known}, fix=fix, owner=owner)


def _others_only(found: Sequence[Candidate], what: str) -> Diagnostic:
    from trainlaunch.run.base.wording import not_yours

    return not_yours(what, found)
