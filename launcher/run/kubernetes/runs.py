"""The runs that a cluster holds, found by our labels; a run is all that one rendering made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from launcher.diagnostics import Diagnostic
from launcher.errors import TargetUnavailable
from launcher.run.kubernetes.client import Cluster
from launcher.run.kubernetes.objects import (
    INPUT_LABEL,
    JOB_LABEL,
    KINDS,
    WORKLOADS,
    Object,
    Reference,
    collection,
    found,
    listed,
    owned,
)
from launcher.run.kubernetes.pods import Pod, first_to_fail, in_order, pod_from
from launcher.run.timestamps import seconds

NO_SUCH_RUN = "TL510"
SUCCESS = frozenset({"Complete", "Completed", "Succeeded"})
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """One run: its workload object as it is now, and by which labels its pods are found."""

    job: str
    input: str
    main: Reference
    thing: Object

    @property
    def selector(self) -> str:
        """The labels of its pods."""
        return f"{JOB_LABEL}={self.job}" + (f",{INPUT_LABEL}={self.input}" if self.input else "")

    @property
    def created(self) -> float:
        """When its workload object was made."""
        return seconds(self.thing["metadata"].get("creationTimestamp") or "0001-01-01T00:00:00Z")

    @property
    def result(self) -> Result:
        """How it stands."""
        return result_of(self.thing)


@dataclass(frozen=True, slots=True)
class Result:
    """How a workload stands: `state` is pending, running, complete or failed; a failure has the cluster's words."""

    state: str
    reason: str = ""
    words: str = ""
    finished: float = 0.0

    @property
    def ended(self) -> bool:
        """Whether it will start no more pods."""
        return self.state in {"complete", "failed"}


def result_of(thing: Object) -> Result:
    """Return how a workload object stands, whatever its kind: by a pod's phase, else by its conditions."""
    status = thing.get("status") or {}
    if thing.get("kind") == "Pod":
        return _of_pod(pod_from(thing))
    for each in status.get("conditions") or ():
        if each.get("status") == "True" and each.get("type") in {*SUCCESS, "Failed"}:
            return Result(
                "complete" if each["type"] in SUCCESS else "failed",
                str(each.get("reason") or ""),
                " ".join(str(each.get("message") or "").split()),
                seconds(each["lastTransitionTime"]) if each.get("lastTransitionTime") else 0.0,
            )
    return Result("running" if status.get("ready") else "pending")


def state_now(result: Result, pods: Iterable[Pod]) -> str:
    """Return a workload's state by its pods: a Job calls a pod active that still waits."""
    if result.ended:
        return result.state
    return "running" if any(pod.state == "running" for pod in pods) else "pending"


def _of_pod(pod: Pod) -> Result:
    if pod.phase in {"Succeeded", "Failed"}:
        state = "complete" if pod.phase == "Succeeded" else "failed"
        return Result(state, pod.reason, pod.words, pod.finished)
    return Result("running" if pod.state == "running" else "pending")


def pods_of_run(cluster: Cluster, run: ClusterRun) -> tuple[Pod, ...]:
    """Return the pods of a run that the cluster still knows, oldest first."""
    return in_order(pod_from(thing) for _, thing in listed(cluster, "Pod", run.selector))


def all_runs(cluster: Cluster, job: str | None, say: Say) -> tuple[ClusterRun, ...]:
    """Return the runs of one job, or of all, newest first."""
    selector = JOB_LABEL if job is None else f"{JOB_LABEL}={job}"
    runs = []
    for kind in WORKLOADS:
        optional = kind not in {"Job", "Pod"}
        for place, thing in listed(cluster, kind, selector, say=say if optional else None):
            if not owned(thing):
                labels = thing["metadata"].get("labels") or {}
                runs.append(ClusterRun(labels[JOB_LABEL], labels.get(INPUT_LABEL, ""), place, thing))
    return tuple(sorted(runs, key=lambda run: run.created, reverse=True))


def newest_run(cluster: Cluster, job: str, say: Say) -> ClusterRun:
    """Return a job's newest run. Raises TargetUnavailable (TL510) where there is none."""
    runs = all_runs(cluster, job, say)
    if not runs:
        raise TargetUnavailable([no_such_run(cluster, job, say)])
    return runs[0]


def no_such_run(cluster: Cluster, job: str, say: Say) -> Diagnostic:
    """Return the error for a job that has nothing in the namespace."""
    known = sorted({run.job for run in all_runs(cluster, None, say)})
    return Diagnostic(
        NO_SUCH_RUN,
        f"{cluster.words} has no run of job {job}",
        "start it with `trainlaunch up JOB --target kubernetes`, or look elsewhere with --namespace or --context",
        why=f"it has runs of {', '.join(known)}" if known else "it has no runs of trainlaunch at all",
    )


def made_by(
    cluster: Cluster, selector: str, say: Say, *, kinds: Iterable[str] = KINDS
) -> list[tuple[Reference, Object]]:
    """Return every object with some labels, of every kind that a rendering may hold, workloads first."""
    made: list[tuple[Reference, Object]] = []
    for kind in kinds:
        made += listed(cluster, kind, selector, say=None if kind in {"Job", "Pod"} else say)
    return made


def runs_several(cluster: Cluster, thing: Object) -> bool:
    """Return whether a workload runs several pods at once; of a TrainJob its runtime may say it."""
    spec: Mapping[str, Any] = thing.get("spec") or {}
    reference = spec.get("runtimeRef") or {}
    if thing.get("kind") == "TrainJob" and reference.get("kind") == "TrainingRuntime":
        version, plural = KINDS["TrainingRuntime"]
        place = Reference(collection(version, plural, cluster.namespace), "TrainingRuntime", str(reference.get("name")))
        runtime = found(cluster, place) or {}
        policy = (runtime.get("spec") or {}).get("mlPolicy") or {}
        spec = {"trainer": {"numNodes": policy.get("numNodes"), **(spec.get("trainer") or {})}}
    return planned_pods({**thing, "spec": spec}) > 1


def planned_pods(thing: Object) -> int:
    """Return how many pods a workload runs at once, by its own kind's fields; at least 1."""
    spec: Mapping[str, Any] = thing.get("spec") or {}
    kind = thing.get("kind")
    if kind == "Job":
        count = spec.get("parallelism")
    elif kind == "JobSet":
        count = sum(
            int(each.get("replicas") or 1)
            * int(((each.get("template") or {}).get("spec") or {}).get("parallelism") or 1)
            for each in spec.get("replicatedJobs") or ()
        )
    elif kind == "PyTorchJob":
        count = sum(int(each.get("replicas") or 1) for each in (spec.get("pytorchReplicaSpecs") or {}).values())
    else:
        count = (spec.get("trainer") or {}).get("numNodes")
    return max(1, int(count or 1))


def exit_code_of(result: Result, pods: Iterable[Pod]) -> int | None:
    """Return the code of the first rank to fail, 0 of a run that completed; None where no process left one."""
    if result.state == "complete":
        return 0
    failed = first_to_fail(pods)
    return None if failed is None else failed.exit_code
