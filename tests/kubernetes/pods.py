"""Pods as a scheduler and a kubelet run them, each by a script that a test gives: a function of one Pod.

A script schedules, starts, prints and ends its pod, in any order that a cluster can show; `runs_its_command` does it
all with a real process of this host. A pod that is deleted meanwhile raises Stopped out of `sleep`, its SIGTERM; a
script that doesn't catch it ends with 143.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from tests.kubernetes.deletion import ENDED, delete, take_out
from tests.kubernetes.events import record
from tests.kubernetes.kinds import PODS
from tests.kubernetes.logs import Log
from tests.kubernetes.statuses import ApiError
from tests.kubernetes.store import Object, Store

INDEX = "batch.kubernetes.io/job-completion-index"
LATE = "Pod was active on the node longer than the specified deadline"
Script = Callable[["Pod"], None]


class Stopped(Exception):
    """The pod was deleted while its script slept."""


_ABOUT_THE_POD = frozenset({"DeadlineExceeded", "Evicted", "FailedCreatePodSandBox", "FailedMount"})


class Pod:
    """A script's hold on one pod; `attempt` counts the pods of its index from 1."""

    def __init__(self, store: Store, made: Object, log: Log, attempt: int) -> None:
        self.store = store
        self.made = made
        self.log = log
        self.attempt = attempt
        self.name: str = made["metadata"]["name"]
        self.namespace: str = made["metadata"]["namespace"]
        self.containers: list[dict[str, Any]] = made["spec"]["containers"]
        self.stopping = threading.Event()
        self.deleted = threading.Event()
        self.doomed: dict[str, str] = {}  # its status since the kubelet gave it up, while its containers still run
        self._started_at = ""

    @property
    def index(self) -> int:
        """Its completion index, or rank among replicas (the master is 0); 0 for a pod on its own."""
        meta = self.made["metadata"]
        known = {**meta.get("labels", {}), **meta.get("annotations", {})}
        replica = int(known.get("training.kubeflow.org/replica-index", 0))
        if known.get("training.kubeflow.org/replica-type") == "worker":
            replica += 1
        return int(known.get(INDEX, replica))

    @property
    def image(self) -> str:
        """The image of its first container."""
        return str(self.containers[0]["image"])

    def event(self, kind: str, reason: str, message: str, component: str = "kubelet", container: str = "") -> None:
        """Record an event about it; most that its kubelet says are about a container, by itself the first."""
        of_it = component == "kubelet" and reason not in _ABOUT_THE_POD
        field = f"spec.containers{{{container or self.containers[0]['name']}}}" if of_it else ""
        record(self.store, self.made, (kind, reason, message), component, field)

    def sleep(self, seconds: float = 3600.0) -> None:
        """Wait, by the cluster's clock; raises Stopped as soon as the pod is deleted."""
        if self.stopping.wait(self.store.clock.real(seconds)):
            raise Stopped

    def until_read(self) -> None:
        """Wait until somebody reads its log, which goes with the pod."""
        if not self.log.opened.wait(60):
            raise AssertionError(f"nobody read the log of {self.name}")

    def condition(self, kind: str, status: str, reason: str = "", message: str = "") -> None:
        """Set one condition."""
        self._update(lambda new: set_condition(new, self.store, (kind, status, reason, message)))

    def unschedulable(self, message: str) -> None:
        """No node takes it, as the scheduler says it."""
        self.condition("PodScheduled", "False", "Unschedulable", message)
        self.event("Warning", "FailedScheduling", message, "default-scheduler")

    def schedule(self, node: str = "node-1") -> None:
        """Bind it to a node; its containers are being created."""

        unready = f"containers with unready status: [{' '.join(each['name'] for each in self.containers)}]"

        def bind(new: Object) -> None:
            new["spec"]["nodeName"] = node
            new["status"]["startTime"] = self.store.clock.stamp()
            new["status"]["hostIP"] = "10.0.0.1"
            set_condition(new, self.store, ("PodScheduled", "True", "", ""))
            set_condition(new, self.store, ("Initialized", "True", "", ""))
            for kind in ("Ready", "ContainersReady"):
                set_condition(new, self.store, (kind, "False", "ContainersNotReady", unready))

        self._update(bind)
        self.wait("ContainerCreating")
        said = f"Successfully assigned {self.namespace}/{self.name} to {node}"
        self.event("Normal", "Scheduled", said, "default-scheduler")

    def wait(self, reason: str, message: str = "") -> None:
        """Put all containers into this waiting state; an unbound pod is bound first."""
        self._bound()
        state = {"reason": reason} | ({"message": message} if message else {})
        self._update(lambda new: new["status"].update(containerStatuses=self._statuses({"waiting": state})))

    def start(self) -> None:
        """Run it: image there, containers started, ready."""
        self._bound()
        self._started_at = self.store.clock.stamp()

        def running(new: Object) -> None:
            new["status"].update(phase="Running", podIP="10.1.0.7")
            state = {"running": {"startedAt": self._started_at}}
            new["status"]["containerStatuses"] = self._statuses(state, ready=True)
            for kind in ("Ready", "ContainersReady", "PodReadyToStartContainers"):
                set_condition(new, self.store, (kind, "True", "", ""))

        self._update(running)
        there = f'Container image "{self.image}" already present on machine and can be accessed by the pod'
        for reason, said in (("Pulled", there), ("Created", "Container created"), ("Started", "Container started")):
            self.event("Normal", reason, said)

    def say(self, text: str | bytes, at: int | None = None) -> None:
        """Print; `at` is the moment in nanoseconds since the epoch, now unless given."""
        if not self._started_at:
            self.start()
        data = text.encode() if isinstance(text, str) else text
        self.log.write(data, self.store.clock.nanoseconds() if at is None else at)

    def exit(self, code: int, reason: str = "", message: str = "", status: dict[str, str] | None = None) -> None:
        """End its containers; `message` is the termination message, `status` goes over the pod's status."""
        if not self._started_at:
            self.start()
        ended: dict[str, Any] = {
            "exitCode": code,
            "reason": reason or ("Error" if code else "Completed"),
            "startedAt": self._started_at,
            "finishedAt": self.store.clock.stamp(),
            "containerID": f"containerd://{self.made['metadata']['uid']}",
        }
        if message:
            ended["message"] = message
        self.log.end()

        def over(new: Object) -> None:
            new["status"]["phase"] = "Failed" if code or status or self.doomed else "Succeeded"
            new["status"]["containerStatuses"] = self._statuses({"terminated": ended})
            why = "PodCompleted" if new["status"]["phase"] == "Succeeded" else "PodFailed"
            for kind in ("Ready", "ContainersReady"):
                set_condition(new, self.store, (kind, "False", why, ""))
            set_condition(new, self.store, ("PodReadyToStartContainers", "False", "", ""))
            new["status"].update(status or self.doomed)

        self._update(over)

    def never_started(self, code: int, reason: str, message: str) -> None:
        """End it although no process of it ever ran: the runtime has a code, and no time of a start."""
        self._started_at = "1970-01-01T00:00:00Z"
        self.exit(code, reason, message)

    def go(self) -> None:
        """Stop it because it was deleted: it then leaves the cluster."""
        self.deleted.set()
        self.stopping.set()

    def killing(self) -> None:
        """The kubelet stops its container, for whatever reason: of a pod that is not started again it says no other."""
        self.event("Normal", "Killing", f"Stopping container {self.containers[0]['name']}")

    def doom(self, reason: str, message: str) -> None:
        """Say Failed, as a kubelet does before it stops the containers that still run."""
        self.doomed = {"reason": reason, "message": message}
        self._update(lambda new: new["status"].update(phase="Failed", **self.doomed))
        self.stopping.set()

    def evict(self, message: str, code: int = 137) -> None:
        """The kubelet evicts it: its node is short of something, or the pod is over one of its own limits."""
        self.event("Warning", "Evicted", message)
        if message.startswith("The node was low on resource"):  # a limit of its own makes no condition
            self.condition("DisruptionTarget", "True", "TerminationByKubelet", message)
        self.killing()
        self.exit(code, status={"reason": "Evicted", "message": message})

    def drain(self, code: int) -> None:
        """Somebody evicts it through the API, as `kubectl drain` does, and its process ends so, two seconds later."""
        self.condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")
        self.deleted_by_somebody(code)

    def deleted_by_somebody(self, code: int) -> None:
        """Somebody deletes it, and its process ends so, two seconds later."""
        delete(self.store, PODS, (self.namespace, self.name), {})
        self.killing()
        time.sleep(self.store.clock.real(2.0))
        self.exit(code)

    def restarted(self, count: int) -> None:
        """Say that its containers were restarted so often."""

        def counted(new: Object) -> None:
            for each in new["status"]["containerStatuses"]:
                each["restartCount"] = count

        self._update(counted)

    def now(self) -> Object:
        """Return the pod as it is in the store; raises ApiError where it is gone."""
        return self.store.get(PODS, self.namespace, self.name)

    def _bound(self) -> None:
        if not self.now()["spec"].get("nodeName"):
            self.schedule()

    def _statuses(self, state: dict[str, Any], *, ready: bool = False) -> list[dict[str, Any]]:
        return [
            {
                "name": each["name"],
                "image": each["image"],
                "imageID": "" if "waiting" in state else f"sha256:{'0' * 64}",
                "ready": ready,
                "started": ready,
                "restartCount": 0,
                "state": state,
                "lastState": {},
            }
            for each in self.containers
        ]

    def _update(self, change: Callable[[Object], None]) -> None:
        self.store.update(PODS, self.namespace, self.name, change)


def set_condition(thing: Object, store: Store, said: tuple[str, str, str, str]) -> None:
    """Put a condition (type, status, reason, message) in place of the one of its type."""
    kind, status, reason, message = said
    known = thing["status"].setdefault("conditions", [])
    new = {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": store.clock.stamp()}
    new |= {key: text for key, text in (("reason", reason), ("message", message)) if text}
    for index, each in enumerate(known):
        if each["type"] == kind:
            known[index] = new | (
                {"lastTransitionTime": each["lastTransitionTime"]} if each["status"] == status else {}
            )
            return
    known.append(new)


class Kubelet:
    """Gives each new pod a thread with its script, and tells it when the pod is deleted or over its deadline."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.script: Script = Pod.start
        self.pods: dict[str, Pod] = {}
        self.failures: list[BaseException] = []
        self._seen: dict[tuple[str, int], int] = {}
        self.restarts = 0
        self._back_at = self._knows_at = 0.0

    def restart(self, *, away: float = 1.0, blank: float = 1.0) -> None:
        """Restart the node's kubelet while its pods go on: open logs end, it is away, then at first knows no pod.

        It takes the cluster's seconds; another restart ends those that are left.
        """
        self._back_at = time.monotonic() + self.store.clock.real(away)
        self._knows_at = self._back_at + self.store.clock.real(blank)
        self.restarts += 1

    @property
    def is_away(self) -> bool:
        """Whether nothing listens at its port."""
        return time.monotonic() < self._back_at

    @property
    def knows_nothing(self) -> bool:
        """Whether it is there and has not heard of its pods yet."""
        return self._back_at <= time.monotonic() < self._knows_at

    def reconcile(self) -> None:
        """One round: begin what is new, stop what is deleted."""
        here = {each["metadata"]["uid"]: each for each in self.store.all(PODS)}
        for uid, made in here.items():
            if uid not in self.pods:
                self._begin(uid, made)
            if "deletionTimestamp" in made["metadata"]:
                self.pods[uid].go()
            elif self._is_late(made) and not self.pods[uid].doomed:
                self.pods[uid].doom("DeadlineExceeded", LATE)
        for uid, pod in self.pods.items():
            if uid not in here:
                pod.go()

    def log_of(self, pod: Object) -> Log:
        """Return a pod's log."""
        return self.pods[pod["metadata"]["uid"]].log

    def _is_late(self, made: Object) -> bool:
        limit = made["spec"].get("activeDeadlineSeconds")
        if limit is None or made["status"].get("phase") in ENDED or "startTime" not in made["status"]:
            return False
        return str(made["status"]["startTime"]) <= self.store.clock.stamp(-limit)

    def _begin(self, uid: str, made: Object) -> None:
        pod = Pod(self.store, made, Log(), 1)
        owner = (made["metadata"].get("ownerReferences") or [made["metadata"]])[0]["uid"]
        pod.attempt = self._seen[owner, pod.index] = self._seen.get((owner, pod.index), 0) + 1
        self.pods[uid] = pod
        threading.Thread(target=self._run, args=(pod,), daemon=True).start()

    def _run(self, pod: Pod) -> None:
        try:
            self._follow_script(pod)
        except ApiError:
            pass  # it was taken out meanwhile
        except Exception as failure:  # a test asks for them; a thread's own would only be printed
            self.failures.append(failure)
        finally:
            pod.log.end()
        pod.deleted.wait()
        take_out(self.store, pod.namespace, pod.name)

    def _follow_script(self, pod: Pod) -> None:
        try:
            self.script(pod)
            if pod.now()["status"].get("phase") not in ENDED:
                pod.sleep()
        except Stopped:
            now = pod.now()
            if now["status"].get("phase") in ENDED and not pod.doomed:
                return
            if now["spec"].get("nodeName"):
                pod.killing()
                pod.exit(143)
