"""Knows the present state of a run, by two threads: its pods by a watch, its workload and why they wait by looks.

A watch is a list, then changes from there, and again whenever it breaks. Signals are handled even while the API server
hangs.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trainlaunch.errors import TargetUnavailable
from trainlaunch.job.spec import JobSpec
from trainlaunch.kinds import JOB, workloads
from trainlaunch.run.kubernetes.api_errors import HTTP_SERVER_ERROR, HTTP_TOO_MANY, ApiRefused, Unreachable
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.objects import Object, get_object, list_objects, pods_path
from trainlaunch.run.kubernetes.pending import Reasons, Wait
from trainlaunch.run.kubernetes.pods import Pod, in_order, pod_from
from trainlaunch.run.kubernetes.results import result_of
from trainlaunch.run.kubernetes.runs import ClusterRun

WATCH_SECONDS = 240  # a watch is ended by the server after a while in any case
PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)


class PodWatch:
    """Pods with some labels, followed in a thread of its own; a pod that goes is kept as it was last seen.

    `changed` is called after each change. `down_since` is when answers stopped to come, by the cluster's clock, None
    while all is well; `refused` is why the watch has ended for good.
    """

    def __init__(
        self, cluster: Cluster, selector: str, changed: Callable[[], None], *, ignored: frozenset[str] = frozenset()
    ) -> None:
        self._cluster = cluster
        self._selector = selector
        self._changed = changed
        self._ignored = ignored
        self._path = pods_path(cluster)
        self._pods: dict[str, Pod] = {}
        self._gone: set[str] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.listed = threading.Event()
        self.down_since: float | None = None
        self.down_why = ""
        self.refused: TargetUnavailable | None = None
        self.failure: Exception | None = None

    def start(self) -> None:
        """Follow until `end`."""
        threading.Thread(target=self._run, daemon=True).start()

    def end(self) -> None:
        """Follow no more."""
        self._ended.set()

    def refresh(self) -> None:
        """List the pods once more, beside the watch. Raises TargetUnavailable."""
        self._list()

    def pods(self) -> tuple[Pod, ...]:
        """Return every pod that was ever seen, oldest first."""
        with self._lock:
            return in_order(self._pods.values())

    def pod(self, uid: str) -> Pod | None:
        """Return a pod as it was last seen."""
        with self._lock:
            return self._pods.get(uid)

    def is_gone(self, uid: str) -> bool:
        """Whether the cluster has forgotten a pod."""
        with self._lock:
            return uid in self._gone

    def _run(self) -> None:
        try:
            self._follow()
        except Exception as bug:  # it must end the follower, not only this thread
            self.failure = bug
            self._changed()

    def _follow(self) -> None:
        failures = 0
        while not self._ended.is_set():
            try:
                self._watch(self._list())
                failures = 0
            except TargetUnavailable as cause:
                if not passes(cause):
                    self.refused = cause
                    self._ended.set()
                    self.listed.set()
                    self._changed()
                    return
                if failures and self.down_since is None:  # one dropped connection is no outage
                    self.down_since, self.down_why = self._cluster.clock.now(), cause.diagnostics[0].why
                    self._changed()
                self._ended.wait(self._cluster.clock.real(PAUSES[min(failures, len(PAUSES) - 1)]))
                failures += 1

    def _list(self) -> str:
        page = self._cluster.get(self._path, (("labelSelector", self._selector),), what="list pods")
        self.down_since = None
        found = [pod_from(each) for each in page.get("items") or ()]
        with self._lock:
            for pod in found:
                self._take(pod)
            for uid in self._pods.keys() - {pod.uid for pod in found}:
                self._forget(uid)
        self.listed.set()
        self._changed()
        return str((page.get("metadata") or {}).get("resourceVersion") or "")

    def _watch(self, version: str) -> None:
        """Take changes until the server ends the watch; the next list closes every gap, also after 410 Gone."""
        query = (
            ("labelSelector", self._selector),
            ("watch", "true"),
            ("resourceVersion", version),
            ("timeoutSeconds", str(WATCH_SECONDS)),
        )
        with self._cluster.stream(self._path, query, what="watch pods", quiet_seconds=WATCH_SECONDS + 30.0) as pieces:
            for line in lines_of(pieces):
                if self._ended.is_set():
                    return
                event = _event(line)
                if event.get("type") not in {"ADDED", "MODIFIED", "DELETED"}:
                    return
                with self._lock:
                    pod = pod_from(event["object"])
                    self._take(pod)
                    if event["type"] == "DELETED":
                        self._forget(pod.uid)
                self._changed()

    def _take(self, pod: Pod) -> None:
        if pod.uid not in self._ignored:
            self._gone.discard(pod.uid)
            self._pods[pod.uid] = pod

    def _forget(self, uid: str) -> None:
        if uid in self._pods:
            self._gone.add(uid)
            self._pods[uid] = replace(self._pods[uid], state="ended", deleting=True)


def lines_of(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield whole lines without their ends; what was cut in the middle of one is dropped."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines


def _event(line: bytes) -> Mapping[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def passes(cause: TargetUnavailable) -> bool:
    """Whether trying again may help: the server is away, too busy, or has forgotten where a list went on."""
    if isinstance(cause, ApiRefused):
        return cause.status in {HTTP_TOO_MANY, 410} or cause.status >= HTTP_SERVER_ERROR
    return isinstance(cause, Unreachable)


LOOK_SECONDS, LOOK_SECONDS_AT_THE_END = 2.0, 0.5
HEALTH_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen last: the workload (None: gone), why pods wait, and what health checks say, by the pod's uid."""

    main: Object | None
    waits: tuple[Wait, ...] = ()
    unhealthy: dict[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


class WorkloadPoller:
    """Looks now and then, and sooner once pods end. `refused` is why it has stopped looking for good."""

    def __init__(
        self, cluster: Cluster, run: ClusterRun, job: JobSpec | None, watch: PodWatch, changed: Callable[[], None]
    ) -> None:
        self._cluster = cluster
        self._run = run
        self._watch = watch
        self._changed = changed
        self._reasons = Reasons(cluster, run.main, job)
        self._ended = threading.Event()
        self._health_at = self._cluster.clock.now()
        self._unhealthy: dict[str, str] = {}
        self.hurry = threading.Event()
        self.seen = Observed(run.thing)
        self.refused: TargetUnavailable | None = None
        self.failure: Exception | None = None

    def start(self) -> None:
        """Look until `end`."""
        threading.Thread(target=self._run_on, daemon=True).start()

    def end(self) -> None:
        """Look no more."""
        self._ended.set()
        self.hurry.set()

    def _run_on(self) -> None:
        while not self._ended.is_set():
            try:
                self.seen = self._look()
            except TargetUnavailable as cause:
                if not passes(cause):
                    self.refused = cause
                    self.end()
            except Exception as bug:  # it must end the follower, not only this thread
                self.failure = bug
                self.end()
            self._changed()
            ending = any(pod.ended for pod in self._watch.pods())
            self.hurry.wait(self._cluster.clock.real(LOOK_SECONDS_AT_THE_END if ending else LOOK_SECONDS))
            self.hurry.clear()

    def _look(self) -> Observed:
        pods = self._watch.pods()
        main = get_object(self._cluster, self._run.main)
        uid = self._run.thing["metadata"].get("uid")
        if main is not None and uid is not None and main["metadata"].get("uid") != uid:
            main = None  # somebody made another one of that name
        if main is None:
            return Observed(None)
        main = {**main, "kind": self._run.main.kind}
        if result_of(main).state == "failed":
            return Observed(self._with_cause(main))
        if result_of(main).ended or not self._watch.listed.is_set():
            return Observed(main)
        waits = tuple(self._reasons.waits(pods, main))
        self._ask_health(pods)
        return Observed(main, waits, dict(self._unhealthy), tuple(self._reasons.refusals))

    def _with_cause(self, main: Object) -> Object:
        """Return a failed workload; a JobSet's own condition only says that a Job failed, so that Job's is taken."""
        if workloads()[self._run.main.kind].levels <= JOB.levels:
            return main
        for _, job in list_objects(self._cluster, JOB.name, self._run.selector):
            failed = [each for each in (job.get("status") or {}).get("conditions") or () if each["type"] == "Failed"]
            if failed and "Deadline" in str(failed[0].get("reason")):
                return {**main, "status": {**main["status"], "conditions": failed}}
        return main

    def _ask_health(self, pods: tuple[Pod, ...]) -> None:
        """Ask what health checks say of pods that are not ready; one that is new is not, by itself."""
        now = self._cluster.clock.now()
        if now - self._health_at < HEALTH_SECONDS:
            return
        self._health_at = now
        for pod in pods:
            if pod.state == "running" and not pod.ready and pod.uid not in self._unhealthy:
                says = self._reasons.unhealthy(pod)
                if says:
                    self._unhealthy[pod.uid] = says
