"""The argument RUN and the options of a target, a cluster and a namespace: what is asked about, and the runs meant."""

from __future__ import annotations

import argparse
import contextlib
import functools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trainlaunch.cli.arguments.job_arguments import POLICY_ARGUMENTS, reach_of, refuse_place_elsewhere, target_name
from trainlaunch.cli.arguments.verb_table import Argument, argument
from trainlaunch.cli.output.streams import Streams, standard_streams
from trainlaunch.errors import JobFileRejected, TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.run_query import ANYONE, Run, RunQuery, check_argument, matching, not_yours, removable
from trainlaunch.targets import KUBERNETES, ON_THIS_MACHINE, TARGETS

if TYPE_CHECKING:
    from trainlaunch.run.base.store import RunStore


RUN_TARGETS = (*ON_THIS_MACHINE, *(each.name for each in TARGETS.values() if not each.on_this_machine))
PLACE_ARGUMENTS = (
    argument("--context", help="kubernetes: the kubeconfig's context (default: its current one)"),
    argument("--namespace", help="kubernetes: the namespace (default: the job's, else the context's)"),
)


def owner_argument(default: str = "yours") -> Argument:
    """Return the option that names whose runs are meant."""
    return argument("--owner", metavar="NAME", help=f"whose runs, `{ANYONE}` for those of all (default: {default})")


def target_arguments(default: str) -> tuple[Argument, ...]:
    """Return the options that name a target which keeps runs; `default` says what is taken without them."""
    return (
        argument("--target", type=target_name, choices=RUN_TARGETS, help=f"where the run is (default: {default})"),
        *PLACE_ARGUMENTS,
    )


# They name a run, whose runs and which targets are looked at.
RUN_ARGUMENTS = (
    argument(
        "job",
        metavar="RUN",
        help="a job file, a run's name, a job's name, or the first 4 or more digits of a run's id",
    ),
    *POLICY_ARGUMENTS,
    owner_argument(),
    *target_arguments("where it is found, clusters apart"),
)


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

    `namespace` is a cluster's, None where it sets none.
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
    from trainlaunch.policy import place_of_runs, read_job

    try:
        job = read_job(path, target=target, use_lock=False, policy=args.policy, reach=reach_of(args))
    except JobFileRejected as rejected:
        stated = place_of_runs(path, target=target, policy=args.policy, reach=reach_of(args))
        if stated.name is None:
            raise
        return NamedJob(stated.name, stated.target, stated.namespace, problem=rejected.diagnostics[0].code)
    return NamedJob(job.name, job.target, job.kubernetes.namespace)


def _is_file(path: Path) -> bool:
    """Whether it is one; a name that is longer than any file's is none."""
    try:
        return path.is_file()
    except OSError:
        return False


@functools.cache
def say_once(text: str) -> None:
    """Say something about the engine or a run that several targets notice."""
    standard_streams().say(text if text.startswith("trainlaunch: ") else f"trainlaunch: {text}")


class FoundRuns(NamedTuple):
    """The runs that RUN and --owner mean, newest first, among the `known` ones of a store; maybe none."""

    store: RunStore
    asked: RunQuery
    known: Sequence[Run]
    runs: Sequence[Run]


def targets_of(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the targets whose runs are looked at: the named one, the job file's own where it stands alone, else all.

    Those of a cluster only where an option or the file names it. Raises JobFileRejected and UsageError.
    """
    named = named_target(args)
    if named is not None:
        return (named,)
    job = job_file(args) if hasattr(args, "job") else None
    if job is not None and not (TARGETS[job.target].starts_container and TARGETS[job.target].on_this_machine):
        return (job.target,)  # its runs need no engine
    return tuple(reversed(ON_THIS_MACHINE))


@contextlib.contextmanager
def opened_store(args: argparse.Namespace, targets: Sequence[str], namespace: str | None = None) -> Iterator[RunStore]:
    """Give the store over the runs of some targets; on a cluster in the namespace of the options, else this one."""
    from trainlaunch.run.base.store import ClusterPlace
    from trainlaunch.run.stores import run_store

    place = ClusterPlace(args.context, args.namespace or namespace)
    with contextlib.closing(run_store(targets, place, say_once)) as store:
        yield store


def store_of_plan(args: argparse.Namespace, plan: LaunchPlan) -> AbstractContextManager[RunStore]:
    """Give the store that a plan's run goes to."""
    return opened_store(args, (plan.target,), plan.job.kubernetes.namespace)


@contextlib.contextmanager
def found_runs(args: argparse.Namespace, *, measuring: bool = False) -> Iterator[FoundRuns]:
    """Give the runs that are meant. With `measuring` those of `probe` and `tune` count as the job's that they measure.

    Raises UsageError, JobFileRejected, and TargetUnavailable where nothing can be looked at.
    """
    targets = targets_of(args)
    job = job_file(args, target=targets[0] if len(targets) == 1 else None)
    asked = _asked(args, job)
    with opened_store(args, targets, None if job is None else job.namespace) as store:
        known = store.runs()
        owned = owned_by(args.owner, known)
        found = matching(owned, asked)
        if measuring:
            name = asked.job or asked.text
            found = tuple(each for each in owned if each in found or each.measures == name)
        yield FoundRuns(store, asked, known, found)


def _asked(args: argparse.Namespace, job: NamedJob | None) -> RunQuery:
    if job is None:
        check_argument(args.job)
        return RunQuery(args.job)
    if job.problem:
        say_once(f"{args.job} is not a job that can run ({job.problem}); its runs are those of job {job.name}")
    return RunQuery(args.job, job.name)


@contextlib.contextmanager
def allowed_runs(args: argparse.Namespace) -> Iterator[tuple[RunStore, Sequence[Run], int]]:
    """Give those of the runs that RUN means that are the caller's, of how many, and their store.

    Raises TargetUnavailable (TL510) where there are none.
    """
    with found_runs(args) as (store, asked, known, found):
        if not found:
            raise store.none_found(asked, known, args.owner, say_once)
        allowed = [each for each in found if args.owner or each.is_mine]
        if not allowed:
            raise _all_alien(args.job, found)
        yield store, allowed, len(found)


@contextlib.contextmanager
def newest_run(args: argparse.Namespace, streams: Streams) -> Iterator[tuple[RunStore, Run]]:
    """Give the newest run of the caller's that RUN means, and its store; names it where RUN means several."""
    with allowed_runs(args) as (store, allowed, number):
        run = store.newest(allowed)
        if number > 1:
            streams.say(f"trainlaunch: run {run.id} of job {run.job}, the newest of {number}, on {run.target}")
        yield store, run


def owned_by(owner: str | None, runs: Sequence[Run]) -> Sequence[Run]:
    """Return the runs of an owner; of all for `any`, and where nobody is named: then others' are told apart later."""
    return runs if owner in {None, ANYONE} else [each for each in runs if each.owner == owner]


def chosen_for_removal(args: argparse.Namespace, found: Sequence[Run]) -> Sequence[Run]:
    """Return the runs that `down` takes. Raises UsageError (TL119), and TargetUnavailable (TL510) where all are alien.

    With --owner those of the named one count as the caller's.
    """
    if args.all:
        taken = [each for each in found if args.owner or each.is_mine]
        if not taken:
            raise _all_alien(args.job, found)
        return taken
    return [removable(found, args.job, anyones=args.owner is not None)]


def _all_alien(what: str, found: Sequence[Run]) -> TargetUnavailable:
    return TargetUnavailable([not_yours(what, found)])
