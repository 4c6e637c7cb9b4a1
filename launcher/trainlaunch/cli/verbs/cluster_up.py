"""`trainlaunch up` on target kubernetes: check, create, follow, explain."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.job_arguments import say_findings, say_unsized
from trainlaunch.cli.output.streams import Streams
from trainlaunch.cli.output.terminal import Screen
from trainlaunch.cli.runs.cluster import ClusterJob, named_cluster, no_code_words
from trainlaunch.cli.runs.runs import hang_watch, hints, say_diagnoses, shown
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.rules import check_plan

if TYPE_CHECKING:
    from trainlaunch.run.base.signals import Event, Events
    from trainlaunch.run.kubernetes.attempts import LastAttempt
    from trainlaunch.run.kubernetes.follow import End, FollowOptions
    from trainlaunch.run.kubernetes.output import Output

LAST_LINES = 10


def up(args: argparse.Namespace, plan: LaunchPlan, streams: Streams) -> int:
    """Show where, let the API server check everything, create, then follow or leave it."""
    from trainlaunch.run.base.console import Console
    from trainlaunch.run.base.signals import Events, trapped_signals
    from trainlaunch.run.kubernetes.attempts import follow_attempts
    from trainlaunch.run.kubernetes.identity import who_am_i
    from trainlaunch.run.kubernetes.launch import Launch
    from trainlaunch.run.kubernetes.removal import remove_expired

    say_findings(check_plan(plan), streams)
    say_unsized(plan, streams)
    screen = Screen(streams)
    with named_cluster(args, namespace=plan.job.kubernetes.namespace, name=plan.job.name) as place:
        cluster = place.cluster
        me = who_am_i(cluster)
        launch = Launch(cluster, plan, me, screen.say)
        screen.say(f"{cluster.access.words} ({cluster.access.server}), namespace {cluster.namespace}: {launch.words}")
        remove_expired(cluster, me, screen.say)
        taken = launch.check()
        if args.replace:
            launch.replace(taken, screen.say)
        else:
            launch.refuse_taken(taken)
        ignored = launch.leftovers()
        events: Events[Event] = Events()
        with trapped_signals(events):  # from here on the cluster holds something of it
            run = launch.make()
            if args.detach:
                streams.result(f"{run.main.kind}/{run.main.name}\n")
                hints(place.command, screen.line)
                return 0
            console = Console(screen.out, screen.err, screen.say, hang_watch(plan))
            options = _options(plan, stop_on_interrupt=args.stop_on_interrupt)
            last = follow_attempts(launch, run, console, events, options=options, ignored=ignored)
            return _told(last, place, screen, streams)


def _options(plan: LaunchPlan, *, stop_on_interrupt: bool) -> FollowOptions:
    from trainlaunch.run.base.watch import planned_shm
    from trainlaunch.run.kubernetes.follow import FollowOptions

    return FollowOptions(
        job=plan.job,
        planned=planned_shm(plan),
        stop_on_interrupt=stop_on_interrupt,
        grace=plan.job.stop_grace_period,
    )


def _told(last: LastAttempt, place: ClusterJob, screen: Screen, streams: Streams) -> int:
    """Say how it ended and why, and return the exit code. Raises what the cluster was lost by."""
    end, say = last.end, screen.say
    if end.how == "detached":
        say(f"{end.stopped_by}: the job goes on without me")
    elif end.how == "removed":
        say("somebody removed the job while it was followed")
    elif end.how == "stuck" and end.wait is not None:
        say(end.wait.given_up)
    elif end.exit_code and end.error is None and end.how == "ended" and not end.silent:
        say(_failure(end, last.output))
    if end.how in {"ended", "stuck"}:
        say_diagnoses(last.evidence, streams, screen.line)
        for line in last.output.remarks(succeeded=end.exit_code == 0):
            say(line)
    if end.how in {"detached", "lost"}:
        hints(place.command, screen.line)
    elif end.how == "stuck":
        say(f"its objects are left: it starts once that is put right; `{place.command('down')}` removes them")
    elif end.how == "ended" and not end.stopped_by:
        say(f"its objects are kept; `{place.command('down')}` removes them")
    if end.error is not None:
        raise end.error
    return end.exit_code


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
