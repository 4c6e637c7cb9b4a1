"""Sentences about a run that engines and clusters both say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import LaunchError
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import ContainerInfo
from trainlaunch.run.base.console import CTRL_C
from trainlaunch.run.base.run_query import ANYONE, Run, is_mine
from trainlaunch.units import counted, format_duration

NAME_TAKEN = "TL506"


def expired(what: str, ttl: int) -> str:
    """Return what is said when a run is removed whose ttl_after_finished of `ttl` seconds is over."""
    return f"removed {what}: its ttl_after_finished {format_duration(ttl)} is over"


def another_attempt(ended: int, limit: int, exit_code: int, wait: int = 0) -> str:
    """Return what is said between attempt number `ended` and the next, which starts `wait` seconds later."""
    later = f" in {format_duration(wait)} (restart.backoff)" if wait else ""
    return f"attempt {ended} of {limit} ended with exit code {exit_code}; starting attempt {ended + 1}{later}"


def not_kept(max_attempts: int, deadline: int | None) -> str:
    """Return what a run goes without where no process keeps it, as a clause."""
    off = [f"restart.max_attempts {max_attempts}"] * (max_attempts > 1)
    off += [] if deadline is None else [f"active_deadline {format_duration(deadline)}"]
    if not off:
        return "nobody watches it for hangs"
    return f"{' and '.join(off)} {'are' if len(off) > 1 else 'is'} off"


def not_started(number: int, cause: LaunchError) -> str:
    """Return what is said of a further attempt that can't be started; the code of the last one is then the run's."""
    whys = (f"{each.code}: {each.message}; {each.fix}" for each in cause.diagnostics)
    return f"attempt {number} can't be started: {'; '.join(whys)}"


def stopping(why: str, grace: int, *, by: str) -> str:
    """Return what is said when a job is told to end within `grace` seconds; `by` is the signal or deadline."""
    kills = "Ctrl-C again" if by == CTRL_C else "Ctrl-C pressed twice"
    said = f"{why}: stopping the job; it has {format_duration(grace)} to end, {kills} kills it"
    if by != "SIGTERM":
        return said
    return f"{said}; whoever sent SIGTERM must wait longer than stop_grace_period {format_duration(grace)} with SIGKILL"


def may_move(holder: ContainerInfo, plan: LaunchPlan) -> bool:
    """Whether a new run of `plan` may rename who holds its name: an ended run of the caller's of the same job."""
    return holder.ended and holder.job == plan.job.name and is_mine(holder.owner)


def held_by_same_job(holder: ContainerInfo, name: str) -> Diagnostic:
    """Return the error for a name that an earlier run of the same job still has (TL506); `name` is the new run's."""
    job = holder.job
    if not is_mine(holder.owner):
        return Diagnostic(
            NAME_TAKEN,
            f"the name {holder.name} is held by a run of job {job} that is {holder.owner}'s",
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
