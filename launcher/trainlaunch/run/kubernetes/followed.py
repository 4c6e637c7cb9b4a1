"""Follows a run on a cluster, or a launch to its last attempt, and tells what no exit code says of its end.

A controller makes the attempts of most kinds; those of a lone Pod are made here.
"""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.run.base.backend import Say
from trainlaunch.run.base.console import Console
from trainlaunch.run.base.log_position import WHOLE
from trainlaunch.run.base.retry import may_retry
from trainlaunch.run.base.signals import Event, Events, trapped_signals
from trainlaunch.run.base.store import Followed, Following, Tell
from trainlaunch.run.base.wording import another_attempt
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.exit_status import evidence_of_end, evidence_of_ended, with_liveness
from trainlaunch.run.kubernetes.follow import End, Follower, FollowOptions
from trainlaunch.run.kubernetes.launch import Launch
from trainlaunch.run.kubernetes.output import Output
from trainlaunch.run.kubernetes.runs import ClusterRun


def follow(cluster: Cluster, run: ClusterRun, console: Console, how: Following, tell: Tell) -> int:
    """Follow a run to its end, or until an interrupt leaves it alone. Raises TargetUnavailable."""
    if how.part is None and not run.result.ended:
        console.say(f"waiting for job {run.job} ({run.main} in {cluster.words}) to end")
    options = FollowOptions(logs=how.part is not None, part=how.part or WHOLE, stop_on_interrupt=how.stop_on_interrupt)
    events: Events[Event] = Events()
    with trapped_signals(events):
        follower = Follower(cluster, run, console, events, options=options)
        end = follower.follow()
        evidence = _evidence(cluster, end, follower, console.say, whole=how.part == WHOLE)
        verdict = no_code_words(end) if end.no_code else verdict_on(end)
        tell(Followed(end.exit_code, evidence, verdict, goes_on=goes_on(end), error=end.error))
    return end.exit_code


def _evidence(cluster: Cluster, end: End, follower: Follower, say: Say, *, whole: bool) -> Evidence | None:
    if end.how not in {"ended", "stuck"}:
        return None
    if whole:
        return with_liveness(cluster, evidence_of_end(end, follower.output), end.pod)
    return evidence_of_ended(cluster, end, say)


def goes_on(end: End) -> str:
    """Return why the job goes on where it was left alone or lost, empty where it has ended."""
    if end.how == "detached":
        return f"{end.stopped_by}: the job goes on without me"
    return "the job may go on" if end.how == "lost" else ""


def verdict_on(end: End) -> str:
    """Return what is said of an end that no process of the job made; empty for another."""
    if end.how == "removed":
        return "somebody removed the job while it was followed"
    return end.wait.given_up if end.how == "stuck" and end.wait is not None else ""


def no_code_words(end: End) -> str:
    """Return the sentence for an end without an exit code of a process that failed."""
    why = (end.result.words or end.result.reason) if end.result else ""
    return f"the job failed, and {end.no_code}{f' ({why})' if why else ''}"


class LastAttempt(NamedTuple):
    """How the last attempt ended, the evidence for a diagnosis, and what it printed."""

    end: End
    evidence: Evidence
    output: Output


def follow_attempts(
    launch: Launch,
    run: ClusterRun,
    console: Console,
    events: Events[Event],
    *,
    options: FollowOptions,
    ignored: frozenset[str],
) -> LastAttempt:
    """Follow a run, and make and follow those after it; `ignored` are the uids of pods of earlier runs."""
    limit = launch.attempts_of(run)
    for attempt in range(1, limit + 1):
        follower = Follower(launch.cluster, run, console, events, options=options, ignored=ignored)
        end = follower.follow()
        evidence = with_liveness(launch.cluster, evidence_of_end(end, follower.output), end.pod)
        if attempt == limit or end.how != "ended" or not may_retry(end.exit_code, evidence):
            break
        console.say(another_attempt(attempt, limit, end.exit_code))
        ignored |= launch.leftovers()
        launch.replace(launch.places(), lambda _: None)
        run = launch.make()
    return LastAttempt(end, evidence, follower.output)
