"""Which runs the argument RUN means, whose they are, and what is said where none may be taken.

RUN is an exact name, then a job, then the start of a run's id.

A run on this host says whose it is in a label, or in the record of a local run, and in no rendered file. A name keeps
people on one engine from ending each other's runs by accident. It is no lock: who may use an engine's socket may do
anything on it.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError
from trainlaunch.sanitize import one_line
from trainlaunch.units import counted

if TYPE_CHECKING:
    from trainlaunch.plan.launch_plan import LaunchPlan
    from trainlaunch.run.base.backend import ContainerInfo

MIN_PREFIX = 4
MAX_LISTED = 10
_ID_PREFIX = rf"[0-9a-f]{{{MIN_PREFIX},}}"
_PLAIN = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}"
OWNER_VARIABLE = "TRAINLAUNCH_OWNER"
OWNER_KEY = "owner"  # of the label, after its prefix, and of a local run's record
MEASURES = "measures"  # of the job that a run of `probe` or `tune` measures, as the owner's
NAME_TAKEN = "TL506"
ANYONE = "any"  # what --owner takes for the runs of all


class Run(NamedTuple):
    """A run as a list tells of it: what RUN names it by, whose it is, how it stands, and what its target `held` of it.

    `id` is what tells it from others, as `ps` shows it; `names` are its exact names, the id included. `owner` is empty
    where nothing says so. `measures` is the job whose script it measures, empty for a job's own run. `created` is in
    seconds since the epoch; `state` is a word or two.
    """

    target: str
    job: str
    id: str
    names: frozenset[str]
    owner: str
    is_mine: bool
    running: bool
    created: float
    state: str
    held: Any
    measures: str = ""


class RunQuery(NamedTuple):
    """What a command is asked about: `text` as typed; `job` is the name in the file that it names, None for no file."""

    text: str
    job: str | None = None


def check_argument(text: str) -> None:
    """Raise UsageError (TL118) for a RUN that no run can be called; an engine would take `` or `*` for every run."""
    if not re.fullmatch(_PLAIN, text):
        raise UsageError(
            [
                Diagnostic(
                    "TL118",
                    f"no job or run is called {text!r}",
                    "name a job file, a job, a run, or the first 4 or more digits of a run's id; `trainlaunch ps` "
                    "lists them",
                    why="names have letters, digits, '-', '_' and '.', and begin with a letter or digit",
                )
            ]
        )


def matching(candidates: Iterable[Run], asked: RunQuery) -> tuple[Run, ...]:
    """Return the runs that are meant, newest first; none where nothing is. Raises UsageError (TL119)."""
    known = sorted(candidates, key=lambda each: each.created, reverse=True)
    if asked.job is not None:
        return tuple(each for each in known if each.job == asked.job)
    named = tuple(each for each in known if asked.text in each.names)
    of_job = tuple(each for each in known if each.job == asked.text)
    # A job's run usually has the job's own name, and the earlier ones have lost it to that: then the job is meant.
    exact = tuple(each for each in named if each.job != asked.text)
    if exact or of_job:
        return exact or of_job
    started = tuple(each for each in known if re.fullmatch(_ID_PREFIX, asked.text) and each.id.startswith(asked.text))
    if len(started) > 1:
        raise _refused(f"{asked.text} is the start of {counted(len(started), 'run id')}", started)
    return started


def removable(found: Sequence[Run], what: str, *, anyones: bool = False) -> Run:
    """Return the one run that `down` may take; `anyones`: whose they are doesn't matter.

    Raises UsageError (TL119) where it would have to guess.
    """
    running = [each for each in found if each.running]
    others = [] if anyones else [each for each in found if not each.is_mine]
    if others:
        raise _refused(f"{what} has {counted(len(others), 'run')} of other owners", found)
    if len(running) > 1:
        raise _refused(f"{what} has {counted(len(running), 'run')} that are running, and `down` takes one", found)
    return running[0] if running else found[0]


def listing(found: Sequence[Run], *, most: int = MAX_LISTED) -> str:
    """Return runs as a list for an error, a line each, of `most` of them."""
    cells = ((each.id, each.job, each.state, each.owner or "no owner") for each in found[:most])
    lines = ["  ".join(map(one_line, each)) for each in cells]
    more = [f"and {len(found) - most} more"] * (len(found) > most)
    return "\n          ".join(["they are", *lines, *more])


def _refused(message: str, found: Sequence[Run]) -> UsageError:
    fix = "name one by its id; `--all` takes all of yours, `--owner NAME` or `--owner any` those of others too"
    return UsageError([Diagnostic("TL119", message, fix, why=listing(found))])


def own_name() -> str:
    """Return the name that runs started from here carry: $TRAINLAUNCH_OWNER, else user@host by the process's uid."""
    stated = os.environ.get(OWNER_VARIABLE, "").strip()
    return stated or f"{_user()}@{os.uname().nodename}"


def is_mine(owner: str) -> bool:
    """Whether a run on this host is the caller's own; one without an owner was started by hand and is anybody's."""
    return owner in {"", own_name()}


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a uid without an account
        return str(os.getuid())


def may_move(holder: ContainerInfo, plan: LaunchPlan) -> bool:
    """Whether a new run of `plan` may rename who holds its name: an ended run of the caller's of the same job."""
    return holder.ended and holder.job == plan.job.name and is_mine(holder.owner)


def held_by_same_job(holder: ContainerInfo, name: str) -> Diagnostic:
    """Return the error for a name that an earlier run of the same job still has (TL506); `name` is the new run's."""
    job = holder.job
    if not is_mine(holder.owner):
        return Diagnostic(
            NAME_TAKEN,
            f"the name {holder.name} is taken by a run of job {job} that is {holder.owner}'s",
            f"give `--name {name}-2`",
            why="a name is unique there, and what others started is left as it is",
        )
    return Diagnostic(
        NAME_TAKEN,
        f"job {job} is {holder.status} already, as {holder.noun} {holder.name}",
        f"follow it with `trainlaunch logs -f {job}`, or end it with `trainlaunch down {job}`",
        why="one run of a job at a time holds its name",
    )


def no_such_run(place: str, job: str, known: set[str], *, fix: str, owner: str | None = None) -> Diagnostic:
    """Return the error for a RUN that nothing in a place is called (TL510); `known` are the jobs with runs there.

    `owner` is the one whose runs alone were looked at.
    """
    of_owner = "" if owner in {None, ANYONE} else f" of {owner}"
    return Diagnostic(
        "TL510",
        f"{place} has no run of job {job}{of_owner}",
        fix,
        why=f"it has runs of {', '.join(sorted(known))}" if known else "it has no runs of trainlaunch at all",
    )


def no_such_attempt(run: str, attempt: int, known: Iterable[int]) -> Diagnostic:
    """Return the error for an attempt that a run has not made, or of which nothing is kept (TL510)."""
    numbers = ", ".join(map(str, sorted(set(known)))) or "none"
    return Diagnostic(
        "TL510", f"{run} has no attempt {attempt}", "give --attempt one of those", why=f"it has {numbers}"
    )


def not_yours(what: str, found: Sequence[Run]) -> Diagnostic:
    """Return the error for a RUN that only runs of other people are called (TL510)."""
    owners = ", ".join(sorted({each.owner or "nobody that is named" for each in found}))
    return Diagnostic(
        "TL510",
        f"no run of {what} is yours",
        "add `--owner any`, or `--owner NAME` with one of those",
        why=f"it has {counted(len(found), 'run')} of {owners}",
    )


def nothing_runs(what: str) -> Diagnostic:
    """Return the error for a RUN of which nothing of the caller's runs now (TL510)."""
    return Diagnostic(
        "TL510",
        f"nothing of yours that {what} means runs now",
        "give the job file for a container of its own: `trainlaunch shell job.yaml`; `trainlaunch ps` lists runs",
        why="a shell enters a container that runs; one that has ended can't be entered",
    )
