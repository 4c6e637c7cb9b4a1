"""Controllers of CRDs, as far as a client sees them: JobSet, Kubeflow's TrainJob and PyTorchJob."""

from __future__ import annotations

import copy
from typing import Any

from tests.kubernetes.deletion import ENDED, delete
from tests.kubernetes.events import record
from tests.kubernetes.jobs import finished, owned, owner_reference
from tests.kubernetes.kinds import JOBS, JOBSETS, PODS, PYTORCHJOBS, RUNTIMES, SERVICES, TRAINJOBS, Resource
from tests.kubernetes.pods import set_condition
from tests.kubernetes.statuses import ApiError, forbidden
from tests.kubernetes.store import Object, Store

RESTARTED = "jobset.sigs.k8s.io/restart-attempt"


class Operators:
    """One round at a time over all objects of these kinds."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.refuse_pods = ""
        self.away = False

    def reconcile(self) -> None:
        """One round."""
        for resource, sync in (
            (TRAINJOBS, self._train_job),
            (JOBSETS, self._job_set),
            (PYTORCHJOBS, self._pytorch_job),
        ):
            for each in self.store.all(resource):
                if "deletionTimestamp" not in each["metadata"] and not _over(each) and not self.away:
                    sync(each)

    def _train_job(self, job: Object) -> None:
        """A TrainJob becomes a JobSet of its own name, from the runtime that it refers to."""
        namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
        made = self.store.find(JOBSETS, namespace, name)
        if made is None:
            runtime = self.store.find(RUNTIMES, namespace, job["spec"]["runtimeRef"]["name"])
            if runtime is not None:
                self._make(JOBSETS, job, _job_set_of(job, runtime))
            return
        ends = {"Completed": ("Complete", "JobsCompleted"), "Failed": ("Failed", "JobsFailed")}
        if made["status"] and not job["status"]:
            self._update(TRAINJOBS, job, lambda new: new["status"].update(jobsStatus=[{"name": "node", "active": 1}]))
        for each in made["status"].get("conditions") or []:
            if each["type"] in ends and each["status"] == "True":
                kind, reason = ends[each["type"]]
                self._condition(TRAINJOBS, job, (kind, reason, each.get("message", "")))

    def _job_set(self, job: Object) -> None:
        spec, name = job["spec"], job["metadata"]["name"]
        if spec.get("suspend"):
            self._condition(JOBSETS, job, ("Suspended", "SuspendedJobs", "jobset is suspended"))
            return
        if self.store.find(SERVICES, job["metadata"]["namespace"], name) is None:
            self._make(SERVICES, job, {"metadata": {"name": name}, "spec": {"clusterIP": "None"}})
        restarts = job["status"].get("restarts", 0)
        children = [each for each in self.store.all(JOBS, job["metadata"]["namespace"]) if owned(each, job)]
        current = [each for each in children if each["metadata"]["labels"][RESTARTED] == str(restarts)]
        for each in children:
            if each not in current and "deletionTimestamp" not in each["metadata"]:
                where = each["metadata"]["namespace"], each["metadata"]["name"]
                delete(self.store, JOBS, where, {"propagationPolicy": "Foreground"})
        if any(_has(each, "Failed") for each in current):
            self._failed(job, current, restarts)
        elif not children:
            jobs = [{"name": "node", "ready": 0, "active": 1, "failed": 0, "succeeded": 0, "suspended": 0}]
            self._update(JOBSETS, job, lambda new: new["status"].update(replicatedJobsStatus=jobs))
            for each in _child_jobs(job, restarts):
                self._make(JOBS, job, each)
        elif current and all(_has(each, "Complete") for each in current):
            said = ("Completed", "AllJobsCompleted", "jobset completed successfully")
            self._condition(JOBSETS, job, said, terminalState="Completed")

    def _failed(self, job: Object, children: list[Object], restarts: int) -> None:
        """Recreate all Jobs while failurePolicy allows it, else fail."""
        policy = job["spec"].get("failurePolicy") or {}
        first = next(each for each in children if _has(each, "Failed"))
        reason = next(each["reason"] for each in first["status"]["conditions"] if each["type"] == "Failed")
        stops = any(
            rule.get("action") == "FailJobSet" and reason in rule.get("onJobFailureReasons", [reason])
            for rule in policy.get("rules") or []
        )
        if restarts < policy.get("maxRestarts", 0) and not stops:
            self._update(JOBSETS, job, lambda new: new["status"].update(restarts=restarts + 1))
            return
        for each in children:
            if not finished(each):
                where = each["metadata"]["namespace"], each["metadata"]["name"]
                delete(self.store, JOBS, where, {"propagationPolicy": "Foreground"})
        message = f"jobset failed due to one or more job failures (first failed job: {first['metadata']['name']})"
        self._condition(JOBSETS, job, ("Failed", "FailedJobs", message), terminalState="Failed")

    def _pytorch_job(self, job: Object) -> None:
        namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
        pods = {each["metadata"]["name"]: each for each in self.store.all(PODS, namespace) if owned(each, job)}
        phases = [each["status"].get("phase") for each in pods.values()]
        if "Failed" in phases:
            failed = next(each for each in pods.values() if each["status"].get("phase") == "Failed")
            role = failed["metadata"]["labels"]["training.kubeflow.org/replica-type"].capitalize()
            said = f"PyTorchJob {name} is failed because 1 {role} replica(s) failed."
            for each in pods.values():
                if each["status"].get("phase") not in ENDED and "deletionTimestamp" not in each["metadata"]:
                    delete(self.store, PODS, (namespace, each["metadata"]["name"]), {})
            self._condition(PYTORCHJOBS, job, ("Failed", "PyTorchJobFailed", said))
        elif pods and all(each == "Succeeded" for each in phases):
            said = f"PyTorchJob {name} is successfully completed."
            self._condition(PYTORCHJOBS, job, ("Succeeded", "PyTorchJobSucceeded", said))
        elif not pods:
            self._condition(PYTORCHJOBS, job, ("Created", "PyTorchJobCreated", f"PyTorchJob {name} is created."))
            for role, replica in job["spec"]["pytorchReplicaSpecs"].items():
                for index in range(replica.get("replicas", 1)):
                    self._make(PODS, job, _replica(job, role, index))

    def _make(self, resource: Resource, owner: Object, made: dict[str, Any]) -> None:
        namespace = owner["metadata"]["namespace"]
        if self.store.find(resource, namespace, made["metadata"]["name"]) is not None:
            return
        made["apiVersion"], made["kind"] = resource.api_version, resource.kind
        made["metadata"]["ownerReferences"] = [owner_reference(owner)]
        made.setdefault("status", {})
        try:
            if resource == PODS and self.refuse_pods:
                raise forbidden(PODS, made["metadata"]["name"], self.refuse_pods)
            self.store.create(resource, namespace, made)
        except ApiError as refused:
            said = f"Error creating: {refused}"
            record(self.store, owner, ("Warning", f"FailedCreate{resource.kind}", said), "operator")

    def _condition(self, resource: Resource, thing: Object, said: tuple[str, str, str], **status: str) -> None:
        kind, reason, message = said

        def change(new: Object) -> None:
            set_condition(new, self.store, (kind, "True", reason, message))
            new["status"].update(status)

        self._update(resource, thing, change)

    def _update(self, resource: Resource, thing: Object, change: Any) -> None:
        self.store.update(resource, thing["metadata"]["namespace"], thing["metadata"]["name"], change)


def _has(thing: Object, kind: str) -> bool:
    conditions = thing["status"].get("conditions") or []
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


def _over(thing: Object) -> bool:
    return any(_has(thing, kind) for kind in ("Complete", "Completed", "Succeeded", "Failed"))


def _job_set_of(job: Object, runtime: Object) -> dict[str, Any]:
    spec = copy.deepcopy(runtime["spec"]["template"]["spec"])
    trainer = job["spec"].get("trainer") or {}
    nodes = trainer.get("numNodes", (runtime["spec"].get("mlPolicy") or {}).get("numNodes", 1))
    for replicated in spec["replicatedJobs"]:
        below = replicated["template"]["spec"]
        meta = below["template"].setdefault("metadata", {})
        labels = meta.setdefault("labels", {})
        labels |= job["spec"].get("labels") or {}
        below |= {"completions": nodes, "parallelism": nodes, "completionMode": "Indexed"}
        for container in below["template"]["spec"]["containers"]:
            container |= {key: trainer[key] for key in ("image", "command", "args") if trainer.get(key)}
            container.setdefault("env", []).extend(trainer.get("env") or [])
    return {"metadata": {"name": job["metadata"]["name"], "labels": job["metadata"].get("labels") or {}}, "spec": spec}


def _child_jobs(job: Object, restarts: int) -> list[dict[str, Any]]:
    made, name = [], job["metadata"]["name"]
    for replicated in job["spec"]["replicatedJobs"]:
        for index in range(replicated.get("replicas", 1)):
            template = copy.deepcopy(replicated["template"])
            own = {
                "jobset.sigs.k8s.io/jobset-name": name,
                "jobset.sigs.k8s.io/replicatedjob-name": replicated["name"],
                "jobset.sigs.k8s.io/job-index": str(index),
                RESTARTED: str(restarts),
            }
            spec = template["spec"]
            spec.setdefault("backoffLimit", 6)
            spec.setdefault("completions", spec.get("parallelism", 1))
            spec.setdefault("completionMode", "Indexed")
            pod_meta = spec["template"].setdefault("metadata", {})
            pod_meta["labels"] = (pod_meta.get("labels") or {}) | own
            spec["template"]["spec"].setdefault("subdomain", name)
            labels = ((template.get("metadata") or {}).get("labels") or {}) | own
            made.append({"metadata": {"name": f"{name}-{replicated['name']}-{index}", "labels": labels}, "spec": spec})
    return made


def _replica(job: Object, role: str, index: int) -> dict[str, Any]:
    template = copy.deepcopy(job["spec"]["pytorchReplicaSpecs"][role]["template"])
    name, kind = job["metadata"]["name"], role.lower()
    own = {
        "training.kubeflow.org/job-name": name,
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
        "training.kubeflow.org/replica-index": str(index),
        "training.kubeflow.org/replica-type": kind,
    }
    if kind == "master":
        own["training.kubeflow.org/job-role"] = "master"
    meta = template.get("metadata") or {}
    labels = (meta.get("labels") or {}) | own
    spec = template["spec"]
    spec["restartPolicy"] = job["spec"]["pytorchReplicaSpecs"][role].get("restartPolicy", "Never")
    metadata = {"name": f"{name}-{kind}-{index}", "labels": labels, "annotations": meta.get("annotations") or {}}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending", "qosClass": "Guaranteed"}}
