"""The Job controller: makes pods, counts their ends, applies backoffLimit, podFailurePolicy and deadlines."""

from __future__ import annotations

import copy
import uuid
from datetime import datetime
from typing import Any

from tests.kubernetes.deletion import ENDED, delete, let_go
from tests.kubernetes.events import record
from tests.kubernetes.kinds import JOBS, PODS
from tests.kubernetes.pods import INDEX, set_condition
from tests.kubernetes.statuses import ApiError, forbidden
from tests.kubernetes.store import Object, Store

TRACKED = "batch.kubernetes.io/job-tracking"
BACKOFF = 0.1  # the real controller starts at 10 s
# These plugins look at a pod before the server has made its name.
BEFORE_NAMES = ("no PriorityClass", "error looking up service account")
BACKOFF_LIMIT = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE = ("DeadlineExceeded", "Job was active longer than specified deadline")


class JobController:
    """One round at a time. `refuse_pods` is what an admission plugin says about each new pod: quota, Pod Security."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.refuse_pods = ""
        self._counted: dict[str, dict[str, str]] = {}  # job uid → pod uid → succeeded, failed or ignored
        self._not_before: dict[str, float] = {}

    def reconcile(self) -> None:
        """One round over all Jobs, and over pods whose Job is gone."""
        jobs = self.store.all(JOBS)
        for job in jobs:
            if "deletionTimestamp" not in job["metadata"]:
                self._sync(job)
        alive = {each["metadata"]["uid"] for each in jobs if "deletionTimestamp" not in each["metadata"]}
        for pod in self.store.all(PODS):
            owners = [each["uid"] for each in pod["metadata"].get("ownerReferences") or [] if each["kind"] == "Job"]
            if TRACKED in (pod["metadata"].get("finalizers") or []) and not alive & set(owners):
                let_go(self.store, pod)

    def _sync(self, job: Object) -> None:
        pods = [each for each in self.store.all(PODS, job["metadata"]["namespace"]) if owned(each, job)]
        if finished(job):
            for pod in pods:
                let_go(self.store, pod)
            self._expire(job)
            return
        if job["spec"].get("suspend"):
            self._suspend(job, pods)
            return
        self._started(job)
        verdict = self._count(job, pods) or self._deadline(job)
        verdict = self._decided(job) or verdict
        active = [each for each in pods if each["status"].get("phase") not in ENDED]
        if verdict is not None:
            self._end(job, active, verdict)
            return
        succeeded = self._number(job, "succeeded")
        if succeeded >= job["spec"].get("completions", 1):
            self._end(job, [], ("Complete", "CompletionsReached", "Reached expected number of succeeded pods"))
            return
        self._make_pods(job, active)
        self._status(job, len(active))

    def _started(self, job: Object) -> None:
        def begin(new: Object) -> None:
            new["status"].setdefault("startTime", self.store.clock.stamp())
            if any(
                each["type"] == "Suspended" and each["status"] == "True" for each in new["status"].get("conditions", [])
            ):
                set_condition(new, self.store, ("Suspended", "False", "JobResumed", "Job resumed"))
                new["status"]["startTime"] = self.store.clock.stamp()

        self._update(job, begin)

    def _count(self, job: Object, pods: list[Object]) -> tuple[str, str, str] | None:
        """Count pods that ended since; return the Job's verdict where one of them decides it."""
        counted = self._counted.setdefault(job["metadata"]["uid"], {})
        verdict = None
        for pod in pods:
            uid, phase = pod["metadata"]["uid"], pod["status"].get("phase")
            if phase not in ENDED or uid in counted:
                continue
            if phase == "Succeeded":
                counted[uid] = f"succeeded {index_of(pod)}"
            else:
                action, why = judged(job, pod)
                counted[uid] = "ignored" if action == "Ignore" else "failed"
                self._not_before[job["metadata"]["uid"]] = self.store.clock.time() + BACKOFF
                if action == "FailJob":
                    verdict = ("Failed", "PodFailurePolicy", why)
            let_go(self.store, pod)
        if verdict is None and self._number(job, "failed") > job["spec"].get("backoffLimit", 6):
            verdict = ("Failed", *BACKOFF_LIMIT)
        return verdict

    def _decided(self, job: Object) -> tuple[str, str, str] | None:
        """Return the verdict of an earlier round, whose pods had to end first."""
        for each in job["status"].get("conditions") or []:
            if each["type"] == "FailureTarget":
                return "Failed", each["reason"], each["message"]
        return None

    def _deadline(self, job: Object) -> tuple[str, str, str] | None:
        limit = job["spec"].get("activeDeadlineSeconds")
        started = self.store.get(JOBS, job["metadata"]["namespace"], job["metadata"]["name"])["status"]["startTime"]
        if limit is None or self.store.clock.time() - seconds(started) < limit:
            return None
        return ("Failed", *DEADLINE)

    def _end(self, job: Object, active: list[Object], verdict: tuple[str, str, str]) -> None:
        """Stop what still runs; the condition that says it comes once nothing does, as since 1.31."""
        kind, reason, message = verdict
        for pod in active:
            if _try_to_delete(self.store, pod):
                said = ("Normal", "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")
                record(self.store, job, said, "job-controller")
        early = "FailureTarget" if kind == "Failed" else "SuccessCriteriaMet"
        self._update(job, lambda new: set_condition(new, self.store, (early, "True", reason, message)))
        self._status(job, len(active))
        if active:
            return

        def over(new: Object) -> None:
            set_condition(new, self.store, (kind, "True", reason, message))
            if kind == "Complete":
                new["status"]["completionTime"] = self.store.clock.stamp()

        self._update(job, over)
        said = ("Normal", "Completed", "Job completed") if kind == "Complete" else ("Warning", reason, message)
        record(self.store, job, said, "job-controller")

    def _make_pods(self, job: Object, active: list[Object]) -> None:
        spec = job["spec"]
        if self.store.clock.time() < self._not_before.get(job["metadata"]["uid"], 0.0):
            return
        wanted = spec.get("completions", 1)
        done = {each.partition(" ")[2] for each in self._counted[job["metadata"]["uid"]].values() if " " in each}
        if spec.get("completionMode") == "Indexed":
            taken = done | {str(index_of(each)) for each in active}
            missing = [each for each in range(wanted) if str(each) not in taken]
        else:
            missing = [0] * (wanted - self._number(job, "succeeded") - len(active))
        for index in missing[: max(0, spec.get("parallelism", 1) - len(active))]:
            self._make_pod(job, index)

    def _make_pod(self, job: Object, index: int) -> None:
        pod = pod_of(job, index)
        try:
            if self.refuse_pods:
                stem = pod["metadata"]["generateName"]
                unnamed = self.refuse_pods.startswith(BEFORE_NAMES)
                raise forbidden(PODS, stem if unnamed else f"{stem}{uuid.uuid4().hex[:5]}", self.refuse_pods)
            made = self.store.create(PODS, job["metadata"]["namespace"], pod)
        except ApiError as refused:
            record(self.store, job, ("Warning", "FailedCreate", f"Error creating: {refused}"), "job-controller")
            self._not_before[job["metadata"]["uid"]] = self.store.clock.time() + BACKOFF
            return
        said = ("Normal", "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")
        record(self.store, job, said, "job-controller")

    def _suspend(self, job: Object, pods: list[Object]) -> None:
        for pod in pods:
            _try_to_delete(self.store, pod)

        def suspended(new: Object) -> None:
            new["status"].pop("startTime", None)
            set_condition(new, self.store, ("Suspended", "True", "JobSuspended", "Job suspended"))

        self._update(job, suspended)

    def _status(self, job: Object, active: int) -> None:
        numbers = {"active": active, "failed": self._number(job, "failed"), "succeeded": self._number(job, "succeeded")}

        def counted(new: Object) -> None:
            new["status"].update({key: number for key, number in numbers.items() if number or key in new["status"]})
            new["status"].setdefault("uncountedTerminatedPods", {})

        self._update(job, counted)

    def _number(self, job: Object, what: str) -> int:
        return sum(each.startswith(what) for each in self._counted[job["metadata"]["uid"]].values())

    def _expire(self, job: Object) -> None:
        limit = job["spec"].get("ttlSecondsAfterFinished")
        ended = [
            each["lastTransitionTime"] for each in job["status"]["conditions"] if each["type"] in {"Complete", "Failed"}
        ]
        if limit is not None and self.store.clock.time() - seconds(ended[0]) >= limit:
            where = job["metadata"]["namespace"], job["metadata"]["name"]
            delete(self.store, JOBS, where, {"propagationPolicy": "Foreground"})

    def _update(self, job: Object, change: Any) -> None:
        self.store.update(JOBS, job["metadata"]["namespace"], job["metadata"]["name"], change)


def pod_of(job: Object, index: int) -> Object:
    """Return the pod that the controller would create for a Job's index, defaults in place."""
    template = copy.deepcopy(job["spec"]["template"])
    meta, spec = template.get("metadata") or {}, template["spec"]
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    ours = {"job-name": name, "controller-uid": uid}
    labels = (meta.get("labels") or {}) | ours | {f"batch.kubernetes.io/{key}": value for key, value in ours.items()}
    annotations = meta.get("annotations") or {}
    stem = f"{name}-"
    if job["spec"].get("completionMode") == "Indexed":
        labels[INDEX] = annotations[INDEX] = str(index)
        spec["hostname"] = f"{name}-{index}"
        stem = f"{name}-{index}-"
        for container in spec["containers"]:
            container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "value": str(index)})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": stem,
            "labels": labels,
            "annotations": annotations,
            "finalizers": [TRACKED],
            "ownerReferences": [owner_reference(job)],
        },
        "spec": spec,
        "status": {"phase": "Pending", "qosClass": "Guaranteed"},
    }


def owner_reference(owner: Object) -> dict[str, Any]:
    """Return the reference of what a controller makes to what it made it for."""
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def judged(job: Object, pod: Object) -> tuple[str, str]:
    """Return the action of the first rule of podFailurePolicy that a failed pod matches, and the controller's words."""
    conditions = {(each["type"], each["status"]) for each in pod["status"].get("conditions", [])}
    for number, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules", [])):
        for wanted in rule.get("onPodConditions") or []:
            if (wanted["type"], wanted.get("status", "True")) in conditions:
                where = f"Pod {pod['metadata']['namespace']}/{pod['metadata']['name']}"
                return rule[
                    "action"
                ], f"{where} has condition {wanted['type']} matching {rule['action']} rule at index {number}"
        for container in pod["status"].get("containerStatuses") or []:
            code = container["state"].get("terminated", {}).get("exitCode", 0)
            if code and "onExitCodes" in rule and _has_code(rule["onExitCodes"], container["name"], code):
                where = (
                    f"Container {container['name']} for pod {pod['metadata']['namespace']}/{pod['metadata']['name']}"
                )
                return rule[
                    "action"
                ], f"{where} failed with exit code {code} matching {rule['action']} rule at index {number}"
    return "Count", ""


def _has_code(asked: dict[str, Any], container: str, code: int) -> bool:
    if asked.get("containerName") not in {None, container}:
        return False
    return (code in asked["values"]) is (asked["operator"] == "In")


def owned(thing: Object, owner: Object) -> bool:
    """Return whether a controller made one thing for another."""
    references = thing["metadata"].get("ownerReferences") or []
    return any(each["uid"] == owner["metadata"]["uid"] for each in references)


def finished(job: Object) -> bool:
    """Return whether a Job is over."""
    conditions = job["status"].get("conditions") or []
    return any(each["type"] in {"Complete", "Failed"} and each["status"] == "True" for each in conditions)


def index_of(pod: Object) -> int:
    """Return a pod's completion index, 0 where it has none."""
    return int((pod["metadata"].get("annotations") or {}).get(INDEX, 0))


def seconds(stamp: str) -> float:
    """Return metav1.Time as seconds since the epoch."""
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def _try_to_delete(store: Store, pod: Object) -> bool:
    if "deletionTimestamp" in pod["metadata"]:
        return False
    try:
        delete(store, PODS, (pod["metadata"]["namespace"], pod["metadata"]["name"]), {})
    except ApiError:
        return False  # it went meanwhile
    return True
