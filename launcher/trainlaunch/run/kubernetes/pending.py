"""Says why a pod does not run yet, and whether it ever will without help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainlaunch.errors import TargetUnavailable
from trainlaunch.job.spec import JobSpec
from trainlaunch.kinds import JOB, workloads
from trainlaunch.run.kubernetes.api_errors import ApiRefused
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.field_lookup import field_in_words, field_of_source, missing_source, span_of
from trainlaunch.run.kubernetes.objects import ForbiddenKinds, Object, Reference, list_objects
from trainlaunch.run.kubernetes.pods import Pod
from trainlaunch.units import format_duration

# Seconds after which `up` gives up, by the reason for which a container waits; others are waited for.
GRACE: Mapping[str, int] = {
    "InvalidImageName": 0,
    "ErrImageNeverPull": 10,
    "CreateContainerConfigError": 20,
    "CreateContainerError": 60,
    "RunContainerError": 60,
    "ErrImagePull": 300,
    "ImagePullBackOff": 300,
    "RegistryUnavailable": 300,
    "SignatureValidationFailed": 20,
}
NO_SUCH_IMAGE_GRACE = 15
MISSING_SOURCE_GRACE = GRACE["CreateContainerConfigError"]  # mounted or a variable, it is the same that is missing
# What may pass by itself, as when a node becomes free, is waited for so long.
PATIENCE: Mapping[str, int] = {
    **dict.fromkeys(("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"), 600),  # a lost node's disk: 6 min
    **dict.fromkeys(("creating", "pulling"), 3600),
    "no controller": 600,
}
MAX_PATIENCE = 24 * 3600
_NO_SUCH_IMAGE = re.compile(
    r"not found|manifest unknown|does not exist|denied|unauthorized|no match for platform|invalid reference", re.I
)
IMAGE_REASONS = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
# What the scheduler's plugins add that fits no pod: halves of sentences about other pods.
_OF_OTHERS = re.compile(r"(?<=not found)\. not found$|\.? ?no new claims to deallocate,?|\.? ?preemption: .*$", re.S)
_MISSING_CLAIM = re.compile(r'persistentvolumeclaim "[^"]*" not found')
_QUOTA = "exceeded quota"  # of all that keeps a controller from making a pod, this alone passes by itself
REFUSED_POD_GRACE = 20
UNTAKEN_SECONDS = 10.0
_TELLING_EVENTS = frozenset(
    {"FailedCreate", "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedScheduling", "Preempted"}
)
QUIET_SECONDS = 3.0  # in which a pod may be on its way without a word
KUEUE_GROUP = "kueue.x-k8s.io"


@dataclass(frozen=True, slots=True)
class Wait:
    """Why something waits: the cluster's `reason`, a sentence, and the seconds after which it is hopeless, if ever."""

    who: str
    reason: str
    sentence: str
    grace: int | None = None

    @property
    def patience(self) -> int:
        """For how many seconds it is waited for: its grace, else what it may take by itself."""
        return PATIENCE.get(self.reason, MAX_PATIENCE) if self.grace is None else self.grace

    @property
    def given_up(self) -> str:
        """The sentence for a follower that waits no longer."""
        alone = f" within {format_duration(self.patience)}" if self.grace is None else ", and without help none will"
        return f"no process of the job has started{alone}: {self.sentence}"


def wait_of(pod: Pod, job: JobSpec | None) -> Wait | None:
    """Return why a pod waits by its own status; None where it says nothing."""
    if pod.state != "waiting" or not pod.reason or pod.reason == "ContainerCreating":
        return None
    words = _OF_OTHERS.sub("", pod.words)
    if pod.reason == "Unschedulable":
        grace = MISSING_SOURCE_GRACE if _MISSING_CLAIM.search(words) else None
        return Wait(pod.name, pod.reason, f"pod {pod.name} waits for a node: {words}{_from(job, words)}", grace)
    if pod.reason == "SchedulingGated":
        return Wait(pod.name, pod.reason, f"pod {pod.name} waits for what holds its scheduling gate, like a queue")
    grace = grace_of(pod.reason, pod.words)
    # a pull that fails goes from one reason to the other and back: one cause, said once
    reason = "image" if pod.reason in IMAGE_REASONS else pod.reason
    words = words.partition("ErrImagePull: ")[2] or words  # the cause that a back-off repeats
    why = f": {words}{_from(job, words)}" if words else ""
    what = "can't get its image" if reason == "image" else f"can't start its container ({pod.reason})"
    return Wait(pod.name, reason, f"pod {pod.name} {what}{why}", grace)


def grace_of(reason: str, words: str) -> int | None:
    """Return how long to wait for a reason to pass by itself; None for one that may take any time."""
    grace = GRACE.get(reason)
    hopeless = reason in IMAGE_REASONS and _NO_SUCH_IMAGE.search(words)
    return min(grace, NO_SUCH_IMAGE_GRACE) if grace is not None and hopeless else grace


def _from(job: JobSpec | None, words: str) -> str:
    """Return where in the job file that comes from, as a clause."""
    if job is None:
        return ""
    missing = missing_source(words)
    field = field_in_words(job, words) if missing is None else field_of_source(job, missing)
    if not field:
        return ""
    span = span_of(job, field)
    return f" ({field}, {span.file}:{span.line})" if span is not None else f" ({field})"


class Reasons:
    """Asks the cluster for what a status does not say: events, and the queue's verdict."""

    def __init__(
        self, cluster: Cluster, main: Reference, job: JobSpec | None, *, patience: float = QUIET_SECONDS
    ) -> None:
        self._cluster = cluster
        self._main = main
        self._job = job
        self._patience = patience
        self._since: dict[str, float] = {}
        self._unreadable: set[str] = set()
        self.refusals: list[str] = []

    def waits(self, pods: Sequence[Pod], main: Object | None) -> list[Wait]:
        """Return why the pods that should run don't, and why there are none."""
        found = [wait for pod in pods if (wait := self._of_pod(pod)) is not None]
        return found or [*self._of_main(pods, main)]

    def unhealthy(self, pod: Pod) -> str:
        """Return what the health check of a running pod says against it, `` where nothing is known."""
        event = self._last_event(pod.uid, only="Unhealthy")
        return " ".join(str(event.get("message", "")).split()).partition("probe failed: ")[2] if event else ""

    def _of_pod(self, pod: Pod) -> Wait | None:
        if pod.state != "waiting":
            return None
        wait = wait_of(pod, self._job)
        if wait is not None or not self._lasts(pod.uid):
            return wait
        event = self._last_event(pod.uid)
        if event is None:
            where = f"on node {pod.node}" if pod.scheduled else "for a node"
            return Wait(pod.name, "creating", f"pod {pod.name} is being created {where}")
        if event["reason"] == "Pulling":
            return Wait(pod.name, "pulling", f"pod {pod.name}: node {pod.node} pulls its image")
        if event["reason"] not in _TELLING_EVENTS:
            return None
        words = " ".join(str(event.get("message", "")).split())
        grace = MISSING_SOURCE_GRACE if event["reason"] == "FailedMount" and missing_source(words) else None
        return Wait(pod.name, event["reason"], f"pod {pod.name} waits: {words}{_from(self._job, words)}", grace)

    def _of_main(self, pods: Sequence[Pod], main: Object | None) -> Iterator[Wait]:
        if main is None or any(not pod.ended for pod in pods) or not self._lasts("main", 1.0):
            return
        uid = main["metadata"]["uid"]
        spec = main.get("spec") or {}
        suspended = bool(spec.get("suspend") or (spec.get("runPolicy") or {}).get("suspend"))
        if suspended:
            queue = (main["metadata"].get("labels") or {}).get(f"{KUEUE_GROUP}/queue-name")
            held = f"queue {queue} has not admitted it{self._verdict(uid)}" if queue else "it is suspended"
            yield Wait("main", f"queue {held}", f"{self._main} waits: {held}")
            return
        event = self._refused_pod(uid)
        if event is not None:
            words = " ".join(str(event.get("message", "")).split())
            yield Wait(
                "main",
                f"FailedCreate {_stable(words)}",
                f"{self._main} can't make its pod: {words}{_from(self._job, words)}",
                None if _QUOTA in words else REFUSED_POD_GRACE,
            )
        elif self._is_untaken(main) and self._lasts("main", UNTAKEN_SECONDS):
            controller = workloads()[self._main.kind].controller
            yield Wait(
                "main",
                "no controller",
                f"{self._main} waits: nothing has written a status into it yet; {controller}, or what that relies on, "
                "does not seem to run there",
            )

    def _refused_pod(self, uid: str) -> Mapping[str, Any] | None:
        """Return the last event of a pod that could not be made: of the workload, or of a Job that it has made."""
        kind = workloads()[self._main.kind]
        event = self._last_event(uid, only="FailedCreate") or self._last_event(uid, only="FailedCreatePod")
        if event is not None or kind.levels <= JOB.levels:
            return event
        jobs = list_objects(self._cluster, JOB.name, f"{kind.pod_label}={self._main.name}", unlisted=ForbiddenKinds())
        found = (self._last_event(job["metadata"]["uid"], only="FailedCreate") for _, job in jobs)
        return next(filter(None, found), None)

    def _is_untaken(self, main: Object) -> bool:
        kind = workloads().get(self._main.kind)
        return kind is not None and bool(kind.controller) and not main.get("status")

    def _lasts(self, who: str, at_least: float = QUIET_SECONDS) -> bool:
        now = self._cluster.clock.now()
        return now - self._since.setdefault(who, now) >= min(at_least, self._patience)

    def _last_event(self, uid: str, *, only: str = "") -> Mapping[str, Any] | None:
        events = self._listed(
            f"/api/v1/namespaces/{self._cluster.namespace}/events",
            (("fieldSelector", f"involvedObject.uid={uid}"),),
            "events",
        )
        fitting = [each for each in events if not only or each.get("reason") == only]
        return max(fitting, key=_moment, default=None)

    def _verdict(self, uid: str) -> str:
        """Return what Kueue says about a job that it holds, as a clause."""
        try:
            group = self._cluster.get(f"/apis/{KUEUE_GROUP}", what="find Kueue")
        except ApiRefused:
            return f", and {self._cluster.access.words} has no Kueue that could"
        version = (group.get("preferredVersion") or {}).get("groupVersion") or f"{KUEUE_GROUP}/v1beta1"
        path = f"/apis/{version}/namespaces/{self._cluster.namespace}/workloads"
        found = self._listed(path, (("labelSelector", f"{KUEUE_GROUP}/job-uid={uid}"),), "workloads")
        for workload in found:
            for each in (workload.get("status") or {}).get("conditions") or ():
                if each.get("type") in {"QuotaReserved", "Evicted", "Admitted"} and each.get("message"):
                    refused = each.get("status") == ("True" if each["type"] == "Evicted" else "False")
                    if refused:
                        return f": {' '.join(each['message'].split())}"
        return ""

    def _listed(self, path: str, query: Sequence[tuple[str, str]], what: str) -> list[Mapping[str, Any]]:
        if what in self._unreadable:
            return []
        try:
            items: list[Mapping[str, Any]] = self._cluster.get(path, query, what=f"list {what}").get("items") or []
        except ApiRefused as refused:
            self._unreadable.add(what)
            self.refusals.append(f"{what} can't be read, so a pod that waits is not always explained: {refused.words}")
            return []
        except TargetUnavailable:
            return []  # the watch of the pods says it
        return items


def _stable(words: str) -> str:
    """Return a message without the names of pods that differ each time: the same cause is said once."""
    return re.sub(r'pods? "[^"]*"', "pod", words)


def _moment(event: Mapping[str, Any]) -> tuple[str, int]:
    """Return when an event was last seen, as something that sorts: most have whole seconds, and a version besides."""
    series, metadata = event.get("series") or {}, event.get("metadata") or {}
    stamp = (
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or metadata.get("creationTimestamp")
        or ""
    )
    version = str(metadata.get("resourceVersion") or "")
    return str(stamp), int(version) if version.isascii() and version.isdigit() else 0
