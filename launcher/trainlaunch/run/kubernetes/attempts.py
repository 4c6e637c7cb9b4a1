"""Follows a launch to its last attempt: a controller makes those of most kinds, those of a lone Pod are made here."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.run.base.console import Console
from trainlaunch.run.base.retry import may_retry
from trainlaunch.run.base.signals import Event, Events
from trainlaunch.run.base.wording import another_attempt
from trainlaunch.run.kubernetes.exit_status import evidence_of_end
from trainlaunch.run.kubernetes.follow import End, Follower, FollowOptions
from trainlaunch.run.kubernetes.launch import Launch
from trainlaunch.run.kubernetes.liveness import with_liveness
from trainlaunch.run.kubernetes.output import Output
from trainlaunch.run.kubernetes.runs import ClusterRun


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
