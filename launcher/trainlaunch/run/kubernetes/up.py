"""Starts a plan's run on a cluster: check, create, then follow it or leave it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from trainlaunch.errors import LaunchError
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import Say
from trainlaunch.run.base.console import Console, hang_watch
from trainlaunch.run.base.signals import DEADLINE, Event, Events, trapped_signals
from trainlaunch.run.base.store import Followed, RanApart, Starting, Tell
from trainlaunch.run.base.watch import planned_shm
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.follow import End, FollowOptions
from trainlaunch.run.kubernetes.followed import LastAttempt, follow_attempts, goes_on, no_code_words, verdict_on
from trainlaunch.run.kubernetes.launch import Launch
from trainlaunch.run.kubernetes.objects import delete, get_object, wait_until_gone
from trainlaunch.run.kubernetes.output import Output
from trainlaunch.run.kubernetes.owned_runs import Identity, who_am_i
from trainlaunch.run.kubernetes.removal import remove_expired
from trainlaunch.sanitize import shown

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
        tell(_followed(last, down))
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
    if end.how == "ended" and end.exit_code and not end.silent:
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


def run_apart(cluster: Cluster, plan: LaunchPlan, console: Console, events: Events[Event]) -> RanApart:
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
    return RanApart(last.end.exit_code, by, last.evidence)


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
