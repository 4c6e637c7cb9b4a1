"""Polls a run's workload, and why its pods wait, in a thread of its own.

Signals are handled even while the API server hangs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from trainlaunch.errors import TargetUnavailable
from trainlaunch.job.spec import JobSpec
from trainlaunch.kinds import JOB, workloads
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.objects import Object, get_object, list_objects
from trainlaunch.run.kubernetes.pending import Reasons, Wait
from trainlaunch.run.kubernetes.pod_watch import PodWatch, passes
from trainlaunch.run.kubernetes.pods import Pod
from trainlaunch.run.kubernetes.runs import ClusterRun, result_of

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
