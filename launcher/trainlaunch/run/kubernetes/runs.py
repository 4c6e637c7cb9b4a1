"""The runs that a cluster holds, found by our labels, whose they are, and who the API server says that we are.

A run is all that one rendered file made. Runs of `up` carry that user's name; commands act on those alone. It stands
in an annotation, since it may hold any character; a label of its hash finds the objects.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX
from trainlaunch.kinds import POD, TRAINING_RUNTIME, Path, objects, workloads
from trainlaunch.run.base.clock import seconds
from trainlaunch.run.base.run_query import Run
from trainlaunch.run.kubernetes.api_errors import ApiRefused
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.objects import (
    JOB_LABEL,
    ForbiddenKinds,
    Object,
    Reference,
    collection,
    get_object,
    has_controller,
    is_everywhere,
    list_objects,
    pods_path,
)
from trainlaunch.run.kubernetes.pods import Pod, in_order, pod_from
from trainlaunch.run.kubernetes.results import Result, result_of
from trainlaunch.targets import KUBERNETES


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """One run: its workload object as it is now."""

    job: str
    main: Reference
    thing: Object

    @property
    def selector(self) -> str:
        """The labels of its pods, of which one is its controller's."""
        return pods_selector(self.job, self.main.kind, self.main.name)

    @property
    def created(self) -> float:
        """When its workload object was made."""
        return seconds(self.thing["metadata"].get("creationTimestamp") or "0001-01-01T00:00:00Z")

    @property
    def result(self) -> Result:
        """How it stands."""
        return result_of(self.thing)


def pods_selector(job: str, kind: str, name: str) -> str:
    """Return the labels of the pods of a workload, whose kind is as in a manifest."""
    return f"{JOB_LABEL}={job},{workloads()[kind].pod_label}={name}"


def pods_of_run(cluster: Cluster, run: ClusterRun) -> tuple[Pod, ...]:
    """Return the pods of a run that the cluster still knows, oldest first."""
    return in_order(pod_from(thing) for _, thing in list_objects(cluster, POD.name, run.selector))


def pod_now(cluster: Cluster, pod: Pod) -> Pod | None:
    """Return a pod as it is now; None where the cluster has it no more, or another one of its name."""
    thing = get_object(cluster, Reference(pods_path(cluster), POD.name, pod.name))
    now = None if thing is None else pod_from(thing)
    return now if now is not None and now.uid == pod.uid else None


def all_runs(cluster: Cluster, job: str | None, unlisted: ForbiddenKinds) -> tuple[ClusterRun, ...]:
    """Return the runs of one job, or of all, newest first; `unlisted` gets the kinds that may not be listed."""
    selector = JOB_LABEL if job is None else f"{JOB_LABEL}={job}"
    runs = []
    for kind in workloads():
        for place, thing in list_objects(cluster, kind, selector, unlisted=None if is_everywhere(kind) else unlisted):
            if not has_controller(thing):
                runs.append(ClusterRun(thing["metadata"]["labels"][JOB_LABEL], place, thing))
    return tuple(sorted(runs, key=lambda run: run.created, reverse=True))


def made_by(
    cluster: Cluster, selector: str, unlisted: ForbiddenKinds, *, kinds: Iterable[str] | None = None
) -> list[tuple[Reference, Object]]:
    """Return every object with some labels, of every kind that a rendered file may hold, workloads first."""
    made: list[tuple[Reference, Object]] = []
    for kind in objects() if kinds is None else kinds:
        made += list_objects(cluster, kind, selector, unlisted=None if is_everywhere(kind) else unlisted)
    return made


def runs_several(cluster: Cluster, thing: Object) -> bool:
    """Return whether a workload runs several pods at once; of a TrainJob its runtime may say it."""
    spec: Mapping[str, Any] = thing.get("spec") or {}
    reference = spec.get("runtimeRef") or {}
    if reference.get("kind") == TRAINING_RUNTIME.name:
        path = collection(TRAINING_RUNTIME.api_version, TRAINING_RUNTIME.plural, cluster.namespace)
        runtime = get_object(cluster, Reference(path, TRAINING_RUNTIME.name, str(reference.get("name")))) or {}
        policy = (runtime.get("spec") or {}).get("mlPolicy") or {}
        spec = {"trainer": {"numNodes": policy.get("numNodes"), **(spec.get("trainer") or {})}}
    return planned_pods({**thing, "spec": spec}) > 1


def planned_pods(thing: Object) -> int:
    """Return how many pods a workload runs at once, by its own kind's fields; at least 1."""
    kind = workloads().get(str(thing.get("kind")))
    if kind is None:
        return 1
    counted = (math.prod(_factor(group, path) for path in kind.counts) for group in values_at(thing, kind.groups))
    return max(1, sum(counted))


def _factor(group: Object, path: Path) -> int:
    return int(next(values_at(group, path), None) or 1)


def values_at(thing: Any, path: Path) -> Iterator[Any]:
    """Yield what is at a kind's path, each item of `*`; nothing where a key is missing or null."""
    if not path:
        yield thing
        return
    key, *rest = path
    if key == "*":
        inner = thing.values() if isinstance(thing, Mapping) else thing
    else:
        inner = [thing[key]] if thing.get(key) is not None else []
    for each in inner:
        yield from values_at(each, tuple(rest))


OWNER_KEY = KUBERNETES_LABEL_PREFIX + "owner"  # of the annotation and of the label
HASH_DIGITS = 10
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_HASHED = re.compile(r".-([0-9a-f]{8})$")


class Identity(NamedTuple):
    """The user of a kubeconfig as its cluster names it; empty where the cluster doesn't say."""

    name: str

    @property
    def hash(self) -> str:
        """What the label of its objects says, empty for nobody."""
        return owner_hash(self.name)

    def owns(self, thing: Object) -> bool:
        """Whether an object was made by this user's `up`; one without an owner is somebody else's."""
        return bool(self.name) and (thing["metadata"].get("labels") or {}).get(OWNER_KEY) == self.hash

    def stamp(self, document: dict[str, Any]) -> None:
        """Write the owner into an object that is about to be made."""
        if self.name:
            document["metadata"].setdefault("labels", {})[OWNER_KEY] = self.hash
            document["metadata"].setdefault("annotations", {})[OWNER_KEY] = self.name


def owner_hash(name: str) -> str:
    """Return what the label of a user's objects says, empty for nobody."""
    return hashlib.sha256(name.encode()).hexdigest()[:HASH_DIGITS] if name else ""


def owner_of(thing: Object) -> str:
    """Return the name of who made an object, empty where nothing says it."""
    return str((thing["metadata"].get("annotations") or {}).get(OWNER_KEY, ""))


def who_am_i(cluster: Cluster) -> Identity:
    """Ask the cluster; nobody where it knows no such question (before 1.28) or refuses it."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = cluster.request("POST", REVIEW, body=body, what="ask who this user is")
    except ApiRefused:
        return Identity("")
    return Identity(str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or ""))


def owned_runs(cluster: Cluster, unlisted: ForbiddenKinds) -> tuple[Run, ...]:
    """Return the runs of all jobs in the namespace, newest first; `unlisted` gets the kinds that may not be listed."""
    runs = all_runs(cluster, None, unlisted)
    me = who_am_i(cluster)
    return tuple(_owned(each, me) for each in runs)


def _owned(run: ClusterRun, me: Identity) -> Run:
    """Return a run; its id is the hash that its name ends with, the whole name where `--name` or stable_name fixed it.

    One without an owner is somebody else's. It may still start or run pods while it is `running`.
    """
    name, result = run.main.name, run.result
    found = _HASHED.search(name)
    own_id = found[1] if found else name
    return Run(
        target=KUBERNETES.name,
        job=run.job,
        id=own_id,
        names=frozenset({name, own_id}),
        owner=owner_of(run.thing),
        is_mine=me.owns(run.thing),
        running=not result.ended,
        created=run.created,
        state=result.state,
        held=run,
    )
