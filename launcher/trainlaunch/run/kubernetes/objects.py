"""Objects of a cluster by their documents: where each kind lives, creation, dry runs and deletion."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX
from trainlaunch.kinds import POD, objects, workloads
from trainlaunch.run.kubernetes.api_errors import HTTP_CONFLICT, HTTP_NOT_FOUND, NO_SUCH_KIND, ApiRefused, Unreachable
from trainlaunch.run.kubernetes.client import Cluster, Query
from trainlaunch.units import format_duration

JOB_LABEL = KUBERNETES_LABEL_PREFIX + "job"
FIELD_MANAGER = "trainlaunch"
DELETE_SECONDS = 60  # beyond the grace period of the pods
POLL_SECONDS = 0.5
CREATE_SECONDS = 60
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """Where one object is: its collection's path, its kind and its name."""

    path: str
    kind: str
    name: str

    @property
    def own_path(self) -> str:
        """The path of the object itself."""
        return f"{self.path}/{self.name}"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def collection(api_version: str, plural: str, namespace: str) -> str:
    """Return the path of a namespace's objects of a kind."""
    group = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
    return f"{group}/namespaces/{namespace}/{plural}"


def reference_of(cluster: Cluster, document: Object) -> Reference:
    """Return where a document's object is, or would be. Raises TargetUnavailable (TL527) for an unknown kind."""
    version, kind = str(document["apiVersion"]), str(document["kind"])
    known = objects().get(kind)
    same = known is not None and known.api_version == version
    plural = known.plural if known is not None and same else _discovered(cluster, version, kind)
    return Reference(collection(version, plural, cluster.namespace), kind, str(document["metadata"]["name"]))


def _discovered(cluster: Cluster, version: str, kind: str) -> str:
    path = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    listed = cluster.get(path, what=f"find the kind {kind}").get("resources") or ()
    for each in listed:
        if each.get("kind") == kind and "/" not in each["name"]:
            return str(each["name"])
    raise TargetUnavailable(
        [
            Diagnostic(
                NO_SUCH_KIND,
                f"{cluster.access.words} has no kind {kind} in {version}",
                f"install what brings {kind}, or set kubernetes.kind to job",
                why=f"{version} there has {', '.join(sorted({each['kind'] for each in listed})) or 'nothing'}",
            )
        ]
    )


def try_out(cluster: Cluster, document: Object) -> tuple[Object, list[str]]:
    """Let the API server check a document without keeping it. Raises ApiRefused.

    Returns the object as webhooks and defaults would make it, and the server's warnings.
    """
    place = reference_of(cluster, document)
    query = (*_strictly(), ("dryRun", "All"))
    return cluster.tried(place.path, query, document, what=f"create {place}")


def create(cluster: Cluster, document: Object) -> Object:
    """Create an object of a document and return it as the API server keeps it.

    Where the answer got lost the object may be there all the same: then a name that is taken is ours.
    """
    place = reference_of(cluster, document)
    lost = False
    until = cluster.clock.now() + CREATE_SECONDS
    while True:
        try:
            made: Object = cluster.request("POST", place.path, _strictly(), body=document, what=f"create {place}")
        except Unreachable as cause:
            if not cause.sent or cluster.clock.now() > until:
                raise
            lost = True
            time.sleep(cluster.clock.real(POLL_SECONDS))
        except ApiRefused as refused:
            if refused.status == HTTP_CONFLICT and lost:
                return get_object(cluster, place) or document
            raise
        else:
            return made


def _strictly() -> Query:
    return (("fieldManager", FIELD_MANAGER), ("fieldValidation", "Strict"))


def get_object(cluster: Cluster, place: Reference) -> Object | None:
    """Return an object as it is now; None where there is none."""
    try:
        got: Object = cluster.get(place.own_path, what=f"read {place}")
    except ApiRefused as refused:
        if refused.status == HTTP_NOT_FOUND:
            return None
        raise
    return got


class ForbiddenKinds:
    """Kinds that this user may not list, collected to be said in one line where that may be why nothing was found.

    A role of a namespace seldom names kinds that its cluster doesn't even have.
    """

    def __init__(self) -> None:
        self.plurals: dict[str, None] = {}

    def line(self, cluster: Cluster) -> str:
        """Return the line, empty where everything could be listed."""
        kinds = ", ".join(self.plurals)
        return f"you may not list {kinds} in {cluster.words}, so they are not looked at" if kinds else ""


def list_objects(
    cluster: Cluster, kind: str, selector: str, *, unlisted: ForbiddenKinds | None = None
) -> Iterator[tuple[Reference, Object]]:
    """Yield the objects of a kind that carry labels; none where the cluster lacks the kind.

    With `unlisted` a kind that may not be listed is collected there, and none of it are yielded.
    """
    record = objects()[kind]
    path = collection(record.api_version, record.plural, cluster.namespace)
    query: list[tuple[str, str]] = [("labelSelector", selector), ("limit", "500")]
    while True:
        try:
            page = cluster.get(path, query, what=f"list {record.plural}")
        except ApiRefused as refused:
            if refused.no_such_kind:
                return
            if unlisted is not None and refused.denied_by_rbac:
                unlisted.plurals[record.plural] = None
                return
            raise
        for each in page.get("items") or ():
            yield (
                Reference(path, kind, each["metadata"]["name"]),
                {"kind": kind, "apiVersion": record.api_version, **each},
            )
        more = (page.get("metadata") or {}).get("continue")
        if not more:
            return
        query = [*query[:2], ("continue", more)]


def delete(cluster: Cluster, place: Reference, *, grace: int | None = None) -> None:
    """Ask for an object's end after that of what it owns; one that is gone is fine."""
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    try:
        cluster.request("DELETE", place.own_path, body=options, what=f"delete {place}")
    except ApiRefused as refused:
        if refused.status != HTTP_NOT_FOUND:
            raise


def set_owner_reference(cluster: Cluster, part: Reference, main: Reference, thing: Object) -> None:
    """Make the object `thing`, at `main`, the owner of another one, which then goes when it goes."""
    owner = {
        "apiVersion": objects()[main.kind].api_version,
        "kind": main.kind,
        "name": main.name,
        "uid": thing["metadata"]["uid"],
    }
    body = {"metadata": {"ownerReferences": [owner]}}
    query = (("fieldManager", FIELD_MANAGER),)
    cluster.request("PATCH", part.own_path, query, body=body, what=f"let {part} belong to {main}")


def wait_until_gone(
    cluster: Cluster, left: Callable[[], Sequence[Reference]], *, grace: int, say: Callable[[str], None]
) -> None:
    """Block until `left` returns nothing more. Raises TargetUnavailable (TL529) where that takes too long."""
    seconds = grace + DELETE_SECONDS
    until, said = cluster.clock.now() + seconds, False
    while True:
        try:
            remaining = left()
        except Unreachable as cause:
            if cluster.clock.now() > until:
                raise
            if not said:
                said = True
                say(f"{cause.diagnostics[0].message}: {cause.diagnostics[0].why}; asking again")
            remaining = None
        if remaining is not None and not remaining:
            return
        if remaining and cluster.clock.now() > until:
            raise TargetUnavailable([_not_deleted(cluster, remaining, seconds)])
        time.sleep(cluster.clock.real(POLL_SECONDS))


def _not_deleted(cluster: Cluster, left: Sequence[Reference], seconds: int) -> Diagnostic:
    names = ", ".join(str(each) for each in left[:5]) + ", …" * (len(left) > 5)
    first = left[0]
    return Diagnostic(
        "TL529",
        f"{names} in {cluster.words} did not go within {format_duration(seconds)}",
        f"look at `kubectl describe {first.kind.lower()} {first.name} -n {cluster.namespace}`, then run `down` again",
        why="its deletion was accepted and goes on; a lost node, or a finalizer whose controller is gone, holds it",
    )


def is_everywhere(kind: str) -> bool:
    """Whether every cluster has a kind that runs a job, so that no command can do without reading it."""
    record = workloads().get(kind)
    return record is not None and not record.controller


def pods_path(cluster: Cluster) -> str:
    """Return the path of the namespace's pods."""
    return collection(POD.api_version, POD.plural, cluster.namespace)


def has_controller(thing: Object) -> bool:
    """Whether another object made this one and takes it along when it goes."""
    return any(each.get("controller") for each in (thing.get("metadata") or {}).get("ownerReferences") or ())
