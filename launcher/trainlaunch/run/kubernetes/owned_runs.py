"""The runs of a cluster with whose they are, as RUN names them, and who the API server says that we are.

Runs made by `up` carry that name, and verbs act on those alone. It stands in an annotation, since it may hold any
character; a label of its hash finds the objects.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, NamedTuple

from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX
from trainlaunch.run.kubernetes.api_errors import ApiRefused
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.objects import ForbiddenKinds, Object
from trainlaunch.run.kubernetes.runs import ClusterRun, all_runs
from trainlaunch.targets import KUBERNETES

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


class OwnedRun(NamedTuple):
    """A run and who asks about it."""

    run: ClusterRun
    me: Identity

    @property
    def job(self) -> str:
        """Its job."""
        return self.run.job

    @property
    def id(self) -> str:
        """The hash that its name ends with; the whole name where `--name` or stable_name fixed it."""
        found = _HASHED.search(self.run.main.name)
        return found[1] if found else self.run.main.name

    @property
    def names(self) -> frozenset[str]:
        """Its object's name, and its id."""
        return frozenset({self.run.main.name, self.id})

    @property
    def owner(self) -> str:
        """Who made it by `up`, as the cluster names that user; empty where it was applied by hand."""
        return owner_of(self.run.thing)

    @property
    def is_mine(self) -> bool:
        """Whether the caller made it; one without an owner is somebody else's."""
        return self.me.owns(self.run.thing)

    @property
    def target(self) -> str:
        """Target kubernetes."""
        return KUBERNETES.name

    @property
    def measures(self) -> str:
        """Nothing: a run that measures leaves no object."""
        return ""

    @property
    def running(self) -> bool:
        """Whether it may still start or run pods."""
        return not self.run.result.ended

    @property
    def created(self) -> float:
        """When its workload object was made."""
        return self.run.created

    @property
    def state(self) -> str:
        """How its workload stands."""
        return self.run.result.state


def owned_runs(cluster: Cluster, unlisted: ForbiddenKinds) -> tuple[OwnedRun, ...]:
    """Return the runs of all jobs in the namespace, newest first; `unlisted` gets the kinds that may not be listed."""
    runs = all_runs(cluster, None, unlisted)
    me = who_am_i(cluster)
    return tuple(OwnedRun(each, me) for each in runs)
