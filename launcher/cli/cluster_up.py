"""`trainlaunch up` on target kubernetes: check, create, follow, explain."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from launcher.cli.cluster import Asked, asked_cluster
from launcher.cli.common import say_findings
from launcher.cli.runs import hang_watch, say_diagnoses, shown
from launcher.cli.streams import Streams
from launcher.cli.terminal import Screen
from launcher.errors import EXIT_BEFORE_START
from launcher.plan.launch_plan import LaunchPlan
from launcher.rules import judged

if TYPE_CHECKING:
    from launcher.diagnose.evidence import Evidence
    from launcher.run.kubernetes.follow import End, Follower
    from launcher.run.kubernetes.runs import ClusterRun
    from launcher.run.supervise import Event, Events

LAST_LINES = 10


def up(args: argparse.Namespace, plan: LaunchPlan, streams: Streams) -> int:
    """Show where, let the API server check everything, create, then follow or leave it."""
    from launcher.run.kubernetes import launch
    from launcher.run.supervise import Events, trapped_signals

    say_findings(judged(plan), streams)
    screen = Screen(streams)
    with asked_cluster(args, job=plan.job, name=plan.job.name) as asked:
        cluster = asked.cluster
        documents = launch.documents_of(plan, cluster.namespace)
        what = ", ".join(f"{each['kind']} {each['metadata']['name']}" for each in documents)
        screen.say(f"{cluster.access.words} ({cluster.access.server}), namespace {cluster.namespace}: {what}")
        launch.remove_expired(cluster, screen.say)
        taken = launch.check(cluster, plan, documents, screen.say)
        if args.replace:
            launch.replace(cluster, plan, taken, screen.say)
        else:
            launch.refuse_taken(cluster, plan, taken)
        ignored = launch.leftovers(cluster, documents)
        events: Events[Event] = Events()
        with trapped_signals(events):  # from here on the cluster holds something of it
            run = launch.launch(cluster, plan, documents, screen.say)
            if args.detach:
                streams.result(f"{run.main.kind}/{run.main.name}\n")
                _hints(asked, screen)
                return 0
            return _Upping(args, plan, asked, screen, streams, events).follow(run, ignored)


def _hints(asked: Asked, screen: Screen) -> None:
    screen.line(f"follow it: {asked.command('logs -f')}")
    screen.line(f"end it:    {asked.command('down')}")


class _Upping:
    """Follows attempts. A controller makes those of a Job; those of a lone Pod are made here."""

    def __init__(
        self,
        args: argparse.Namespace,
        plan: LaunchPlan,
        asked: Asked,
        screen: Screen,
        streams: Streams,
        events: Events[Event],
    ) -> None:
        self._args = args
        self._plan = plan
        self._asked = asked
        self._screen = screen
        self._streams = streams
        self._events = events

    def follow(self, run: ClusterRun, ignored: frozenset[str]) -> int:
        """Follow one attempt after another and return the last one's exit code."""
        from launcher.run.kubernetes import launch
        from launcher.run.kubernetes.exit_status import evidence_of_end
        from launcher.run.supervise import may_retry

        plan, attempts = self._plan, self._plan.job.max_attempts if run.main.kind == "Pod" else 1
        for attempt in range(1, attempts + 1):
            follower = self._follower(run, ignored)
            end = follower.follow()
            evidence = evidence_of_end(end, follower.output)
            if attempt == attempts or end.how != "ended" or not may_retry(end.exit_code, evidence):
                break
            self._screen.say(
                f"attempt {attempt} of {attempts} ended with exit code {end.exit_code}; starting attempt {attempt + 1}"
            )
            cluster = self._asked.cluster
            documents = launch.documents_of(plan, cluster.namespace)
            ignored |= launch.leftovers(cluster, documents)
            launch.replace(cluster, plan, [run.main], lambda _: None)
            run = launch.launch(cluster, plan, documents, self._screen.say)
        return self._told(end, evidence, follower)

    def _follower(self, run: ClusterRun, ignored: frozenset[str]) -> Follower:
        from launcher.run.kubernetes.follow import Follower, Wishes
        from launcher.run.supervise import Console

        plan = self._plan
        wishes = Wishes(plan, stop_on_interrupt=self._args.stop_on_interrupt, grace=plan.job.stop_grace_period)
        console = Console(self._screen.out, self._screen.err, self._screen.say, hang_watch(plan))
        return Follower(self._asked.cluster, run, console, self._events, wishes=wishes, ignored=ignored)

    def _told(self, end: End, evidence: Evidence, follower: Follower) -> int:
        say, words = self._screen.say, self._asked
        if end.how == "detached":
            say(f"{end.stopped_by}: the job goes on without me")
        elif end.how == "removed":
            say("somebody removed the job while it was followed")
        elif end.how == "stuck" and end.wait is not None:
            say(f"no process of the job has started, and without help none will: {end.wait.sentence}")
        elif end.exit_code and end.error is None and end.how == "ended":
            say(self._failure(end, follower))
        if end.how in {"ended", "stuck"}:
            say_diagnoses(evidence, self._streams, self._screen.line)
            self._remark(end, follower)
        if end.how in {"detached", "lost"}:
            _hints(words, self._screen)
        elif end.how == "stuck":
            say(f"its objects are left: it starts once that is put right; `{words.command('down')}` removes them")
        elif end.how == "ended" and not end.stopped_by:
            say(f"its objects are kept; `{words.command('down')}` removes them")
        if end.error is not None:
            raise end.error
        return end.exit_code

    def _failure(self, end: End, follower: Follower) -> str:
        pod = end.pod
        if pod is None or end.exit_code == EXIT_BEFORE_START != pod.exit_code:
            why = (end.result.words or end.result.reason) if end.result else ""
            return f"the job failed and no process of it left an exit code{f': {why}' if why else ''}"
        if not follower.output.several:
            return f"the job ended with exit code {end.exit_code} (pod {pod.name}, node {pod.node})"
        lines = [line for line in follower.output.tail(pod).splitlines() if line.strip()][-LAST_LINES:]
        who = f"rank {pod.rank} (pod {pod.name})" if pod.rank is not None else f"pod {pod.name}"
        told = "".join(f"\n  {shown(line)}" for line in lines)
        return f"{who} failed first, with exit code {end.exit_code}" + (f"; its last lines:{told}" if told else "")

    def _remark(self, end: End, follower: Follower) -> None:
        for line in follower.output.remarks(succeeded=end.exit_code == 0):
            self._screen.say(line)
