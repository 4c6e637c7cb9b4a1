"""The runs in a namespace of a cluster, and what commands do with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from trainlaunch.diagnose import new_scanner
from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.errors import TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import Chunk, Say
from trainlaunch.run.base.console import Console, Event, Events, Outcome
from trainlaunch.run.base.container_shell import new_token, planned_argv, running_argv
from trainlaunch.run.base.log_position import LogPart
from trainlaunch.run.base.run_query import ANYONE, Run, RunQuery, no_such_run
from trainlaunch.run.base.store import (
    ClusterPlace,
    Following,
    Live,
    RunReport,
    RunRow,
    RunStatus,
    Starting,
    Tell,
)
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.follow import end_of_run
from trainlaunch.run.kubernetes.gone_pods import result_with_events
from trainlaunch.run.kubernetes.kubeconfig import find_access
from trainlaunch.run.kubernetes.objects import ForbiddenKinds
from trainlaunch.run.kubernetes.output import look_inside, print_logs
from trainlaunch.run.kubernetes.pods import Pod
from trainlaunch.run.kubernetes.removal import remove_orphans, remove_runs
from trainlaunch.run.kubernetes.results import Result, exit_code_of, state_now
from trainlaunch.run.kubernetes.runs import owned_runs, pods_of_run, who_am_i
from trainlaunch.run.kubernetes.shell import own_pod, run_in_pod
from trainlaunch.run.kubernetes.status import evidence_of_ended, report, status_of
from trainlaunch.run.kubernetes.up import follow, run_apart, start
from trainlaunch.targets import KUBERNETES
from trainlaunch.units import format_size

MOST_PODS = 8  # that are looked into, one after the other


def open_cluster(place: ClusterPlace) -> tuple[Cluster, str]:
    """Return the cluster, and the options that name it again in another command; nothing is contacted yet."""
    access = find_access(place.context)
    cluster = Cluster(access, place.namespace or access.namespace)
    options = f" --target {KUBERNETES.name}" + (f" --context {place.context}" if place.context else "")
    return cluster, options + (f" --namespace {cluster.namespace}" if cluster.namespace != access.namespace else "")


class ClusterStore:
    """The runs of one namespace, as their objects and pods tell of them."""

    schedules = True

    def __init__(self, place: ClusterPlace) -> None:
        self.cluster, self.options = open_cluster(place)
        self._unlisted = ForbiddenKinds()

    @property
    def place(self) -> str:
        """The namespace and its cluster."""
        return self.cluster.words

    @property
    def elsewhere(self) -> str:
        """The namespace and its cluster."""
        return f" in {self.cluster.words}"

    def runs(self) -> tuple[Run, ...]:
        """Return every run that carries our labels, newest first."""
        self._unlisted = ForbiddenKinds()
        return owned_runs(self.cluster, self._unlisted)

    def left_out(self, *, found: bool) -> tuple[str, ...]:
        """Return which kinds may not be listed, where nothing was found: the run may be of such a kind."""
        return () if found or not self._unlisted.plurals else (self._unlisted.line(self.cluster),)

    def none_found(self, asked: RunQuery, known: Sequence[Run], owner: str | None, say: Say) -> TargetUnavailable:
        """Return the error, after a line on kinds that were not looked at."""
        for line in self.left_out(found=False):
            say(line)
        fix = "start it with `trainlaunch up JOB --target kubernetes`, or look elsewhere with --namespace or --context"
        return TargetUnavailable(
            [no_such_run(self.place, asked.job or asked.text, {each.job for each in known}, fix=fix)]
        )

    def newest(self, runs: Sequence[Run]) -> Run:
        """Return the first: the API server has listed them whole."""
        return runs[0]

    def rows(self, runs: Sequence[Run]) -> list[RunRow]:
        """Return their rows, with the largest /dev/shm of their pods."""
        return [self._row(each, pods_of_run(self.cluster, each.held)) for each in runs]

    def _row(self, owned: Run, pods: Sequence[Pod]) -> RunRow:
        result = self._result(owned, pods)
        size = max((pod.shm_size for pod in pods), default=0)
        code = exit_code_of(result, pods) if result.ended else None
        return RunRow(owned, state_now(result, pods), code, format_size(size) if size else "-")

    def statuses(self, runs: Sequence[Run]) -> list[RunStatus]:
        """Return them with all pods that the cluster still has."""
        found = [(each, pods_of_run(self.cluster, each.held)) for each in runs]
        return [status_of(self.cluster, each, self._result(each, pods), pods) for each, pods in found]

    def _result(self, owned: Run, pods: Sequence[Pod]) -> Result:
        return result_with_events(self.cluster, owned.held, owned.held.result, pods)

    def report(self, run: Run, say: Say) -> RunReport:
        """Look into its pods, and at why one waits or how it ended."""
        return report(self.cluster, run, say)

    def print_log(self, run: Run, part: LogPart, attempt: int | None, show: Callable[[Chunk], None], say: Say) -> None:
        """Show the logs of all its pods, or of an attempt's, one after the other; a cluster has one stream."""
        print_logs(self.cluster, run.held, lambda data: show(Chunk(False, data)), say, part=part, attempt=attempt)

    def follow(self, run: Run, console: Console, how: Following, tell: Tell) -> int:
        """Follow it; its controller keeps it, whoever follows."""
        return follow(self.cluster, run.held, console, how, tell)

    def start(self, plan: LaunchPlan, console: Console, how: Starting, tell: Tell) -> int:
        """Let the API server check all objects, make them, then follow the run or leave it."""
        return start(self.cluster, plan, console, how, tell, down=f"trainlaunch down {plan.job.name}{self.options}")

    def run_apart(self, plan: LaunchPlan, console: Console, events: Events[Event], typed: str) -> Outcome:
        """Run it once, and delete its objects."""
        return run_apart(self.cluster, plan, console, events)

    def evidence(self, run: Run, say: Say) -> Evidence | None:
        """Return what the cluster knows of its end."""
        if not run.held.result.ended:
            return None
        pods = pods_of_run(self.cluster, run.held)
        return evidence_of_ended(self.cluster, end_of_run(self._result(run, pods), pods), say)

    def live(self, run: Run, say: Say) -> list[Live]:
        """Look into some of its pods that run, each with the log of all."""
        return list(self._live(run, say))

    def _live(self, run: Run, say: Say) -> Iterator[Live]:
        scanner = new_scanner()
        self.print_log(run, LogPart(), None, lambda chunk: scanner.feed(chunk.data), say)
        evidence = Evidence(None, scanned=scanner.facts())
        running = self._running(run)
        if len(running) > MOST_PODS:
            say(f"looking at {MOST_PODS} of {len(running)} pods that run")
        for pod in running[:MOST_PODS]:
            of_pod = replace(
                evidence,
                target=KUBERNETES.name,
                planned=pod.planned,
                shm_size=pod.shm_size,
                container=pod.name,
                namespace=self.cluster.namespace,
                look=look_inside(self.cluster, pod, say),
            )
            yield Live(f"pod {pod.name} runs", False, of_pod)
        if not running:
            yield Live(f"{run.held.main} goes on, and no pod of it runs", False, evidence)

    def _running(self, run: Run) -> list[Pod]:
        return [each for each in pods_of_run(self.cluster, run.held) if each.state == "running"]

    def enter(self, runs: Sequence[Run], command: Sequence[str], term: str | None, say: Say) -> int | None:
        """Run it in the first pod of the newest run that has one that runs."""
        pods = next(filter(None, map(self._running, runs)), None)
        if pods is None:
            return None
        pod = min(pods, key=lambda each: each.node_index or 0)
        if len(pods) > 1 or len(runs) > 1:
            say(f"pod {pod.name}, the first of {len(pods)} that run")
        return run_in_pod(self.cluster, pod, running_argv(command), new_token(), term=term, say=say)

    def own_shell(self, plan: LaunchPlan, term: str | None, say: Say) -> int:
        """Run it in the pod of a Job of its own, which the cluster removes."""
        cluster, token = self.cluster, new_token()
        say(f"{cluster.access.words} ({cluster.access.server}), namespace {cluster.namespace}")
        with own_pod(cluster, plan, token, say) as pod:
            return run_in_pod(cluster, pod, planned_argv(plan), token, term=term, say=say)

    def remove(self, runs: Sequence[Run], say: Say) -> None:
        """Delete them with all that their rendered files made, and nothing else."""
        remove_runs(self.cluster, [each.held for each in runs], say)

    def remove_left(self, asked: RunQuery, known: Sequence[Run], owner: str | None, say: Say) -> None:
        """Delete what runs that are gone have left, as a Service: the caller's, or with `any` everybody's."""
        hashes = None if owner == ANYONE else {who_am_i(self.cluster).hash}
        if not remove_orphans(self.cluster, asked.job or asked.text, hashes, say):
            raise self.none_found(asked, known, owner, say)

    def close(self) -> None:
        """Close all connections."""
        self.cluster.close()
