"""Starts a plan's run on a cluster, follows it or one that is there, and tells what no exit code says of its end.

A controller makes the attempts of most kinds; those of a lone Pod are made here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.errors import LaunchError
from trainlaunch.exit_codes import EXIT_TRY_ELSEWHERE
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import Say
from trainlaunch.run.base.console import (
    DEADLINE,
    Console,
    Event,
    Events,
    Outcome,
    another_attempt,
    hang_watch,
    trapped_signals,
)
from trainlaunch.run.base.log_position import WHOLE
from trainlaunch.run.base.retry import may_retry
from trainlaunch.run.base.run_evidence import with_plan
from trainlaunch.run.base.store import Followed, Following, Starting, Tell
from trainlaunch.run.base.watch import planned_shm
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.follow import End, Follower, FollowOptions
from trainlaunch.run.kubernetes.launch import Launch
from trainlaunch.run.kubernetes.liveness import with_liveness
from trainlaunch.run.kubernetes.objects import delete, get_object, wait_until_gone
from trainlaunch.run.kubernetes.output import Output
from trainlaunch.run.kubernetes.pods import interruption
from trainlaunch.run.kubernetes.removal import remove_expired
from trainlaunch.run.kubernetes.runs import ClusterRun, Identity, who_am_i
from trainlaunch.run.kubernetes.status import evidence_of_end, evidence_of_ended
from trainlaunch.sanitize import shown


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
    """Return what is said of an end that no process of the job made, or that is not what its 0 says; else empty."""
    saved = saved_words(end)
    if end.how == "removed":
        return "somebody removed the job while it was followed" + (f": {saved}" if saved else "")
    if saved:
        return saved
    return end.wait.given_up if end.how == "stuck" and end.wait is not None else ""


def saved_words(end: End) -> str:
    """Return what is said of a run whose deciding pod was told to end and ended with 0; empty for another."""
    if end.exit_code != EXIT_TRY_ELSEWHERE or (end.pod is not None and end.pod.exit_code != 0):
        return ""
    if end.pod is None:
        return end.result.words if end.result is not None else ""
    return interruption(end.pod) if end.pod.interrupted or end.result is None else end.result.words


def no_code_words(end: End) -> str:
    """Return the sentence for an end without an exit code of a process that failed."""
    if end.result is not None and end.result.state == "unknown":
        return f"the job's exit code is unknown: {end.result.words}"
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


LAST_LINES = 10


def start(cluster: Cluster, plan: LaunchPlan, console: Console, how: Starting, tell: Tell, *, down: str) -> int:
    """Start it and return its exit code; `down` is the command that removes it. Raises TargetUnavailable."""
    me = who_am_i(cluster)
    launch = _launch(cluster, plan, me, console.say)
    remove_expired(cluster, me, console.say)
    taken = launch.check()
    if how.replace:
        launch.replace(taken, console.say)
    else:
        launch.refuse_taken(taken)
    ignored = launch.leftovers()
    events: Events[Event] = Events()
    with trapped_signals(events):  # from here on the cluster holds something of it
        run = launch.make()
        if how.detach:
            tell(Followed(0, started=f"{run.main.kind}/{run.main.name}"))
            return 0
        options = FollowOptions(
            job=plan.job,
            planned=planned_shm(plan),
            stop_on_interrupt=how.stop_on_interrupt,
            grace=plan.job.stop_grace_period,
        )
        watched = replace(console, detect_hang=hang_watch(plan))
        last = follow_attempts(launch, run, watched, events, options=options, ignored=ignored)
        tell(_followed(last._replace(evidence=with_plan(last.evidence, plan)), down))
    return last.end.exit_code


def _launch(cluster: Cluster, plan: LaunchPlan, me: Identity, say: Say) -> Launch:
    """Return a launch whose place is said before anything is made."""
    launch = Launch(cluster, plan, me, say)
    say(f"{cluster.access.words} ({cluster.access.server}), namespace {cluster.namespace}: {launch.words}")
    return launch


def _followed(last: LastAttempt, down: str) -> Followed:
    """Return how the last attempt ended and why."""
    end = last.end
    verdict, remarks = verdict_on(end), tuple[str, ...]()
    waited, seconds = last.output.data_wait()
    if end.how == "ended" and end.exit_code and not end.silent and not verdict:
        verdict = _failure(end, last.output)
    if end.how in {"ended", "stuck"}:
        remarks = (*last.output.remarks(succeeded=end.exit_code == 0), *_left(end, down))
    return Followed(
        end.exit_code,
        evidence=last.evidence if end.how in {"ended", "stuck"} else None,
        verdict=verdict,
        remarks=remarks,
        goes_on=goes_on(end),
        error=end.error,
        data_wait=waited,
        seconds=seconds,
    )


def _left(end: End, down: str) -> tuple[str, ...]:
    if end.how == "stuck":
        return (f"its objects are left: it starts once that is put right; `{down}` removes them",)
    return () if end.stopped_by else (f"its objects are kept; `{down}` removes them",)


def _failure(end: End, output: Output) -> str:
    pod = end.pod
    if pod is None or end.no_code:
        return no_code_words(end)
    if not output.several:
        return f"the job ended with exit code {end.exit_code} (pod {pod.name}, node {pod.node})"
    lines = [line for line in output.tail(pod).splitlines() if line.strip()][-LAST_LINES:]
    who = f"rank {pod.node_index} (pod {pod.name})" if pod.node_index is not None else f"pod {pod.name}"
    told = "".join(f"\n  {shown(line)}" for line in lines)
    return f"{who} failed first, with exit code {end.exit_code}" + (f"; its last lines:{told}" if told else "")


def run_apart(cluster: Cluster, plan: LaunchPlan, console: Console, events: Events[Event]) -> Outcome:
    """Run it to its end, or until a signal of `events`, and delete all that it made. Raises TargetUnavailable."""
    launch = _launch(cluster, plan, who_am_i(cluster), console.say)
    launch.refuse_taken(launch.check())
    options = FollowOptions(job=plan.job, stop_on_interrupt=True, grace=plan.job.stop_grace_period)
    with trapped_signals(events):
        run = launch.make()  # where it fails it deletes what it made itself, and what holds a name is not ours
        with _removing(cluster, launch, console.say):
            last = follow_attempts(launch, run, console, events, options=options, ignored=frozenset())
    if last.end.error is not None:
        raise last.end.error
    if last.end.how == "stuck" and last.end.wait is not None:
        console.say(last.end.wait.given_up)
    reason = last.end.result.reason if last.end.result else ""
    by = DEADLINE if reason == "DeadlineExceeded" else last.end.stopped_by
    return Outcome(last.end.exit_code, last.evidence, stopped_by=by)


@contextlib.contextmanager
def _removing(cluster: Cluster, launch: Launch, say: Say) -> Iterator[None]:
    """Delete all that a launch made afterwards, and wait until it is gone."""
    try:
        yield
    finally:
        try:
            places = launch.places()
            for place in reversed(places):
                if get_object(cluster, place) is not None:
                    delete(cluster, place)
            wait_until_gone(
                cluster, lambda: [each for each in places if get_object(cluster, each) is not None], grace=30, say=say
            )
        except LaunchError as cause:
            say(f"something of {launch.words} may be left in {cluster.words}: {cause}")
