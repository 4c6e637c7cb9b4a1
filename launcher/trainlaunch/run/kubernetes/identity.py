"""Who the API server says that we are: runs made by `up` carry it, and verbs act on those alone.

The name stands in an annotation, since it may hold any character; a label of its hash finds the objects.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX
from trainlaunch.run.kubernetes.api_errors import ApiRefused
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.objects import Object

OWNER_KEY = KUBERNETES_LABEL_PREFIX + "owner"  # of the annotation and of the label
HASH_DIGITS = 10
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


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
