"""Deletes as the API server and the garbage collector do them: grace periods, propagation, owner references."""

from __future__ import annotations

from typing import Any

from tests.kubernetes.kinds import NAMESPACES, PODS, RESOURCES, Resource
from tests.kubernetes.statuses import ApiError, conflict
from tests.kubernetes.store import Key, Object, Store

FOREGROUND = "foregroundDeletion"
ENDED = {"Succeeded", "Failed"}
_BY_KEY = {each.key: each for each in RESOURCES}


def delete(store: Store, resource: Resource, where: tuple[str, str], options: dict[str, Any]) -> Object:
    """Delete one object and return what the server answers: a Status when it is gone, else the object as it is now."""
    namespace, name = where
    with store.changed:
        thing = store.get(resource, namespace, name)
        wanted = (options.get("preconditions") or {}).get("uid")
        if wanted and wanted != thing["metadata"]["uid"]:
            why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {thing['metadata']['uid']}"
            raise conflict(resource, name, why)
        if resource == PODS:
            return _delete_pod(store, thing, options)
        if options.get("propagationPolicy") == "Orphan":
            _orphan(store, thing["metadata"]["uid"])
        if options.get("propagationPolicy") == "Foreground" or thing["metadata"].get("finalizers"):
            return store.update(resource, namespace, name, lambda new: _mark(store, new, options))
        store.remove(resource, namespace, name)
        return _gone(resource, thing)


def _mark(store: Store, thing: Object, options: dict[str, Any]) -> None:
    meta = thing["metadata"]
    if "deletionTimestamp" in meta:
        return
    meta["deletionTimestamp"] = store.clock.stamp()
    meta["deletionGracePeriodSeconds"] = 0
    if options.get("propagationPolicy") == "Foreground":
        meta["finalizers"] = [*meta.get("finalizers", []), FOREGROUND]


def _delete_pod(store: Store, pod: Object, options: dict[str, Any]) -> Object:
    meta = pod["metadata"]
    grace = options.get("gracePeriodSeconds")
    if grace is None:
        grace = pod["spec"].get("terminationGracePeriodSeconds", 30)
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in ENDED:
        grace = 0  # nothing runs that would need it
    if grace == 0 and not meta.get("finalizers"):
        store.remove(PODS, meta["namespace"], meta["name"])
        return _gone(PODS, pod)

    def terminate(new: Object) -> None:
        known = new["metadata"].get("deletionGracePeriodSeconds")
        if known is None or grace < known:  # a later delete may only shorten it
            new["metadata"]["deletionTimestamp"] = store.clock.stamp(grace)
            new["metadata"]["deletionGracePeriodSeconds"] = grace

    return store.update(PODS, meta["namespace"], meta["name"], terminate)


def let_go(store: Store, pod: Object) -> None:
    """Take the finalizers off a pod, and the pod out where it was deleted and nothing of it runs."""
    meta = pod["metadata"]

    def without(new: Object) -> None:
        new["metadata"].pop("finalizers", None)

    with store.changed:
        if store.find(PODS, meta["namespace"], meta["name"]) is None:
            return
        store.update(PODS, meta["namespace"], meta["name"], without)
        take_out(store, meta["namespace"], meta["name"])


def take_out(store: Store, namespace: str, name: str) -> None:
    """Remove a deleted pod once nothing of it runs and nobody holds it."""
    with store.changed:
        pod = store.find(PODS, namespace, name)
        if pod is None or "deletionTimestamp" not in pod["metadata"] or pod["metadata"].get("finalizers"):
            return
        if not pod["spec"].get("nodeName") or pod["status"].get("phase") in ENDED:
            store.remove(PODS, namespace, name)


def _gone(resource: Resource, thing: Object) -> Object:
    details = {"name": thing["metadata"]["name"], "kind": resource.plural, "uid": thing["metadata"]["uid"]}
    if resource.group:
        details["group"] = resource.group
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _orphan(store: Store, owner: str) -> None:
    def let_go(thing: Object) -> None:
        kept = [each for each in thing["metadata"].get("ownerReferences", []) if each["uid"] != owner]
        thing["metadata"]["ownerReferences"] = kept

    for key, _ in _dependents(store, owner):
        store.update(_BY_KEY[key[:2]], key[2], key[3], let_go)


def _dependents(store: Store, owner: str) -> list[tuple[Key, Object]]:
    return [
        (key, thing)
        for key, thing in store.everything()
        if any(each["uid"] == owner for each in thing["metadata"].get("ownerReferences") or [])
    ]


def collect_garbage(store: Store) -> None:
    """One round of the garbage collector: foreground deletions go on, and what has lost its owner goes."""
    with store.changed:
        known = {thing["metadata"]["uid"] for _, thing in store.everything()}
        for key, thing in list(store.everything()):
            owners = thing["metadata"].get("ownerReferences") or []
            if FOREGROUND in (thing["metadata"].get("finalizers") or []):
                _foreground(store, key, thing)
            elif owners and not any(each["uid"] in known for each in owners):
                _try_to_delete(store, key, {"propagationPolicy": "Background"})
            elif key[:2] == NAMESPACES.key and "deletionTimestamp" in thing["metadata"]:
                _empty_namespace(store, key)


def _foreground(store: Store, key: Key, owner: Object) -> None:
    dependents = _dependents(store, owner["metadata"]["uid"])
    for below, thing in dependents:
        if "deletionTimestamp" not in thing["metadata"]:
            _try_to_delete(store, below, {"propagationPolicy": "Foreground"})
    if not dependents:
        store.remove(_BY_KEY[key[:2]], key[2], key[3])


def _empty_namespace(store: Store, key: Key) -> None:
    inside = [each for each, _ in store.everything() if each[2] == key[3]]
    for each in inside:
        _try_to_delete(store, each, {})
    if not inside:
        store.remove(NAMESPACES, "", key[3])


def _try_to_delete(store: Store, key: Key, options: dict[str, Any]) -> None:
    try:
        delete(store, _BY_KEY[key[:2]], (key[2], key[3]), options)
    except ApiError:
        return  # it went meanwhile
