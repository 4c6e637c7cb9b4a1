"""Follows a run on a cluster to its end: logs of all nodes, why something waits, whose exit code counts."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from trainlaunch.errors import TargetUnavailable
from trainlaunch.exit_codes import EXIT_BEFORE_START, EXIT_INTERRUPTED, EXIT_TRY_ELSEWHERE
from trainlaunch.job.spec import JobSpec
from trainlaunch.kinds import POD, workloads
from trainlaunch.run.base.console import HANGUP, Console, Event, Events, Presses, attempt_aside, stopping
from trainlaunch.run.base.log_position import WHOLE, LogPart
from trainlaunch.run.base.run_evidence import NEVER_SPOKE
from trainlaunch.run.base.watch import PlannedShm
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.gone_pods import result_with_events
from trainlaunch.run.kubernetes.liveness import stalled_and_content
from trainlaunch.run.kubernetes.logs import is_silent
from trainlaunch.run.kubernetes.objects import Reference, delete, pods_path
from trainlaunch.run.kubernetes.output import Output
from trainlaunch.run.kubernetes.pending import Wait
from trainlaunch.run.kubernetes.pod_watch import Observed, PodWatch, WorkloadPoller
from trainlaunch.run.kubernetes.pods import Pod, attempts_of, end_of, first_to_fail, taken_away
from trainlaunch.run.kubernetes.results import Result, exit_code_of, no_code, result_of
from trainlaunch.run.kubernetes.runs import ClusterRun
from trainlaunch.units import format_duration

TICK_SECONDS = 1.0
LOST_SECONDS = 600
SETTLE_SECONDS = 20.0  # for the last pods to show their end, and for logs to bring something more
UNSEEN_SECONDS = 3.0  # for pods that were not seen yet, or an exit code that comes late
PODS = Event("pods")


@dataclass(frozen=True, slots=True)
class End:
    """How following ended: `how` is ended, detached, stuck (it never starts by itself), removed or lost.

    `pod` is the one that decides: the first to fail, or the one that is stuck; `error` is why the cluster was lost.
    `no_code` is why no process's exit code is the run's, where that is so. `silent`: it completed and its preflight
    never spoke, so the exit code is 125 and not the 0 of its pods.
    """

    how: str
    exit_code: int
    pod: Pod | None = None
    wait: Wait | None = None
    result: Result | None = None
    stopped_by: str = ""
    killed_by: str = ""
    error: TargetUnavailable | None = None
    no_code: str = ""
    silent: bool = False


class FollowOptions(NamedTuple):
    """How a run is followed: `logs` are printed, a `part` of those that there are at the beginning.

    An interrupt may stop the job, which then has `grace` seconds where no pod says its own.
    `job` and `planned` are known to `up` only: where a wait comes from, and what /dev/shm is compared with.
    """

    job: JobSpec | None = None
    planned: PlannedShm | None = None
    logs: bool = True
    part: LogPart = WHOLE
    stop_on_interrupt: bool = False
    grace: int = 30


class Follower:
    """Follows one run; `events` is fed by signals and by the watch of its pods."""

    def __init__(
        self,
        cluster: Cluster,
        run: ClusterRun,
        console: Console,
        events: Events[Event],
        *,
        options: FollowOptions,
        ignored: frozenset[str] = frozenset(),
    ) -> None:
        self._cluster = cluster
        self._run = run
        self._console = console
        self._events = events
        self._options = options
        self._watch = PodWatch(cluster, run.selector, lambda: events.put(PODS), ignored=ignored)
        self.output = Output(cluster, self._watch, console, run.thing, options.planned, options.part)
        self._poller = WorkloadPoller(cluster, run, options.job, self._watch, lambda: events.put(PODS))
        self._said: dict[str, str] = {}
        self._started: set[str] = set()
        self._remarked: set[str] = set()
        self._waiting_since: dict[tuple[str, str], tuple[float, Wait]] = {}
        self._stopped_by = self._killed_by = ""
        self._presses = Presses()
        self._ended_at: float | None = None
        self._down_said = self._asked_again = False

    def follow(self) -> End:
        """Return when the run has ended, was left alone, can't start, or was lost."""
        self._watch.start()
        self._poller.start()
        try:
            while True:
                end = self._on_event(self._next()) or self._step()
                if end is not None:
                    return self._checked(end)
        finally:
            self._watch.end()
            self._poller.end()
            self.output.close()

    def _checked(self, end: End) -> End:
        """Return an end; not 0 where nothing of the job ran, 125, or where its kubelet stopped it as unhealthy, 75."""
        if end.how != "ended" or end.exit_code or end.stopped_by:
            return end
        pods = self._watch.pods()
        if (stalled := stalled_and_content(self._cluster, pods)) is not None:
            pod, why = stalled
            result = Result("failed", "Unhealthy", why, pod.finished)
            return replace(end, exit_code=EXIT_TRY_ELSEWHERE, pod=pod, result=result)
        if not is_silent(self._cluster, pods):
            return end
        self._console.say(NEVER_SPOKE)
        return replace(end, exit_code=EXIT_BEFORE_START, silent=True)

    def _next(self) -> Event:
        """Return the next signal, or a change of the pods; many changes at once are one."""
        event = PODS
        try:
            event = self._events.get(timeout=self._cluster.clock.real(TICK_SECONDS))
            while event.kind == "pods":
                event = self._events.get_nowait()
        except queue.Empty:
            pass
        return event

    def _on_event(self, event: Event) -> End | None:
        if event.kind == "trouble":
            self._console.say(event.value)
        if event.kind not in {"signal", HANGUP}:
            return None
        second = self._presses.is_second(event)
        if event.kind == HANGUP or not self._options.stop_on_interrupt:
            return End("detached", EXIT_INTERRUPTED, stopped_by=event.value)
        if not self._stopped_by:
            self._stopped_by = event.value
            self._console.say(stopping(event.value, self._grace(), by=event.value))
            attempt_aside(self._events, lambda: delete(self._cluster, self._run.main))
            self._poller.hurry.set()
        elif second and not self._killed_by:
            self._killed_by = event.value
            self._console.say("killing it")
            attempt_aside(self._events, self._kill)
        return None

    def _grace(self) -> int:
        """Return the seconds that its pods have to end: each says it; before there is one, the job's or the default."""
        return max((pod.grace for pod in self._watch.pods()), default=self._options.grace)

    def _kill(self) -> None:
        path = pods_path(self._cluster)
        for pod in self._watch.pods():
            if not pod.ended:
                delete(self._cluster, Reference(path, POD.name, pod.name), grace=1)

    def _step(self) -> End | None:
        failure = self._watch.failure or self._poller.failure or self.output.failure
        if failure is not None:
            raise failure
        refused = self._watch.refused or self._poller.refused
        if refused is not None:
            return End("lost", EXIT_BEFORE_START, error=refused)
        lost = self._outage()
        if lost is not None or not self._watch.listed.is_set():
            return lost
        pods, seen = self._watch.pods(), self._poller.seen
        if self._options.logs:
            self.output.take(pods)
        self._say_started(pods)
        return self._stuck(pods, seen) or self._ended(pods, seen)

    def _outage(self) -> End | None:
        since = self._watch.down_since
        if since is None:
            if self._down_said:
                self._console.say(f"{self._cluster.access.words} answers again")
            self._down_said = False
            return None
        if self._cluster.clock.now() - since > LOST_SECONDS:
            self._console.say(f"{self._cluster.access.words} did not answer for {format_duration(LOST_SECONDS)}")
            return End("lost", EXIT_BEFORE_START)
        if not self._down_said:
            self._down_said = True
            patience = format_duration(LOST_SECONDS)
            self._console.say(f"{self._watch.down_why}; the job goes on, and I ask again for up to {patience}")
        return None

    def _stuck(self, pods: tuple[Pod, ...], seen: Observed) -> End | None:
        """Say what waits, each reason once; give up on what no time will heal, where nothing has started."""
        if seen.main is None or result_of(seen.main).ended or self._stopped_by:
            return None
        self._remark(pods, seen)
        now = self._cluster.clock.now()
        begun = {pod.name for pod in pods if pod.state != "waiting"}
        waits = [wait for wait in seen.waits if wait.who not in begun]
        one_ran = any(pod.ran for pod in pods)  # its end is the run's, however long the others wait
        for wait in waits:
            key = (wait.who, wait.reason)
            since, first = self._waiting_since.setdefault(key, (now, wait))
            if self._said.get(wait.who) != wait.reason:
                self._said[wait.who] = wait.reason
                patience = f"; giving up after {format_duration(wait.patience)}" if wait.patience else ""
                self._console.say(wait.sentence + patience * (not one_ran))
            if now - since >= wait.patience and not one_ran:
                stuck = next((pod for pod in pods if pod.name == wait.who), None)
                return End("stuck", EXIT_BEFORE_START, stuck, first)
        for key in self._waiting_since.keys() - {(wait.who, wait.reason) for wait in waits}:
            del self._waiting_since[key]
        return None

    def _remark(self, pods: tuple[Pod, ...], seen: Observed) -> None:
        """Say once what could not be asked, and what a health check has against a pod."""
        names = {pod.uid: pod.name for pod in pods}
        checks = (f"the health check of pod {names.get(uid)} says: {says}" for uid, says in seen.unhealthy.items())
        # Once one has failed its controller takes the others away.
        taken = () if first_to_fail(pods) else (taken_away(pod) for pod in pods if pod.deleting and not pod.ended)
        for remark in (*seen.remarks, *checks, *taken):
            if remark not in self._remarked:
                self._remarked.add(remark)
                self._console.say(remark)

    def _say_started(self, pods: tuple[Pod, ...]) -> None:
        """Say that a pod runs where it was said to wait, or comes in the place of one that ended."""
        attempts = attempts_of(pods)
        for pod in pods:
            if pod.state == "waiting" or pod.uid in self._started:
                continue
            self._started.add(pod.uid)
            attempt = attempts[pod.uid]
            before = [
                each
                for each in pods
                if each.node_index == pod.node_index and attempts[each.uid] == attempt - 1 and each.ended
            ]
            if before:
                self._console.say(f"pod {before[0].name} {end_of(before[0])}; attempt {attempt} is pod {pod.name}")
            elif self._said.get(pod.name) is not None and pod.state == "running":
                self._console.say(f"pod {pod.name} runs" + (f" on node {pod.node}" if pod.node else ""))

    def _ended(self, pods: tuple[Pod, ...], seen: Observed) -> End | None:
        result = None if seen.main is None else result_of(seen.main)
        if result is not None and not result.ended:
            return None
        now = self._cluster.clock.now()
        if self._ended_at is None:
            self._ended_at = now
        waited = now - self._ended_at
        settled = bool(pods) and all(pod.ended and pod.exit_code is not None for pod in pods)
        if not settled:
            still_running = not all(pod.ended for pod in pods)
            if still_running and waited > UNSEEN_SECONDS and not self._asked_again:
                self._asked_again = True  # the watch may be dead without a word
                attempt_aside(self._events, self._watch.refresh)
            if waited < (SETTLE_SECONDS + self._grace() if still_running else UNSEEN_SECONDS):
                return None
        if not self.output.drained:
            if min(waited, self.output.quiet) < SETTLE_SECONDS:
                return None
            self._console.say("not all of the logs could be read to their ends")
        return self._verdict(self._watch.pods(), result)

    def _verdict(self, pods: tuple[Pod, ...], result: Result | None) -> End:
        pod = first_to_fail(pods)
        alone = not workloads()[self._run.main.kind].levels
        if result is None and alone and pod is not None and pod.disrupted:  # it goes with what took it away
            result = Result("failed", pod.reason, pod.words, pod.finished)
        if result is not None and not self._stopped_by:
            return end_of_run(result_with_events(self._cluster, self._run, result, pods), pods)
        codes = [each.exit_code for each in pods if each.exit_code is not None]
        if pod is not None and pod.exit_code is not None:
            code = EXIT_TRY_ELSEWHERE if pod.interrupted and not self._stopped_by else pod.exit_code
        else:
            code = 0 if codes else EXIT_INTERRUPTED if self._stopped_by else EXIT_BEFORE_START
        how = "ended" if self._stopped_by else "removed"
        return End(how, code, pod, stopped_by=self._stopped_by, killed_by=self._killed_by)


def end_of_run(result: Result, pods: Sequence[Pod]) -> End:
    """Return how a workload that has ended did, as `result_with_events` has it."""
    code = exit_code_of(result, pods)
    if code is None:
        deciding = first_to_fail(pods)
        return End("ended", EXIT_BEFORE_START, deciding, result=result, no_code=no_code(pods))
    return End("ended", code, first_to_fail(pods) if result.state == "failed" else None, result=result)
