"""Kueue as far as a client sees it: Jobs of a queue are suspended until a Workload of theirs is admitted."""

from __future__ import annotations

from tests.kubernetes.jobs import owner_reference
from tests.kubernetes.kinds import JOBS, WORKLOADS
from tests.kubernetes.pods import set_condition
from tests.kubernetes.store import Object, Store

QUEUE = "kueue.x-k8s.io/queue-name"


def queued(thing: Object) -> bool:
    """Return whether an object names a queue."""
    return QUEUE in (thing["metadata"].get("labels") or {})


def hold(store: Store, job: Object, why: str) -> None:
    """Make the Workload of a Job, not admitted, with Kueue's reason."""
    pending = {
        "type": "QuotaReserved",
        "status": "False",
        "reason": "Pending",
        "message": why,
        "lastTransitionTime": store.clock.stamp(),
    }
    workload = {
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "metadata": {
            "name": f"job-{job['metadata']['name'][:40]}-{job['metadata']['uid'][:5]}",
            "labels": {"kueue.x-k8s.io/job-uid": job["metadata"]["uid"]},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {"queueName": job["metadata"]["labels"][QUEUE], "active": True},
        "status": {"conditions": [pending]},
    }
    store.create(WORKLOADS, job["metadata"]["namespace"], workload)


def admit(store: Store) -> None:
    """Admit every Workload, and let the Jobs go."""

    def admitted(new: Object) -> None:
        for kind in ("QuotaReserved", "Admitted"):
            set_condition(new, store, (kind, "True", kind, "The workload is admitted"))

    for workload in store.all(WORKLOADS):
        store.update(WORKLOADS, workload["metadata"]["namespace"], workload["metadata"]["name"], admitted)
    for job in filter(queued, store.all(JOBS)):
        meta = job["metadata"]
        store.update(JOBS, meta["namespace"], meta["name"], lambda new: new["spec"].update(suspend=False))
