"""Events as components record them: the same one again only counts."""

from __future__ import annotations

import uuid

from tests.kubernetes.kinds import EVENTS
from tests.kubernetes.store import Object, Store

SCHEDULER = "default-scheduler"


def record(store: Store, about: Object, said: tuple[str, str, str], component: str, field: str = "") -> None:
    """Record an event about an object, or a `field` of it; `said` is type, reason and message."""
    kind, reason, message = said
    meta = about["metadata"]
    if component == SCHEDULER:  # it has the newer API, whose first event has neither a count nor whole seconds
        times: Object = {
            "eventTime": store.clock.micro(),
            "firstTimestamp": None,
            "lastTimestamp": None,
        }
    else:
        times = {"count": 1, "firstTimestamp": store.clock.stamp(), "lastTimestamp": store.clock.stamp()}
    with store.changed:
        for known in store.all(EVENTS, meta["namespace"]):
            if known["involvedObject"]["uid"] == meta["uid"] and (known["reason"], known["message"]) == said[1:]:
                store.update(EVENTS, meta["namespace"], known["metadata"]["name"], lambda new: _again(store, new))
                return
        store.create(
            EVENTS,
            meta["namespace"],
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"{meta['name']}.{uuid.uuid4().hex[:16]}"},
                "involvedObject": {
                    "apiVersion": about["apiVersion"],
                    "kind": about["kind"],
                    "name": meta["name"],
                    "namespace": meta["namespace"],
                    "uid": meta["uid"],
                    "resourceVersion": meta["resourceVersion"],
                    **({"fieldPath": field} if field else {}),
                },
                "type": kind,
                "reason": reason,
                "message": message,
                **times,
                "source": {"component": "" if component == SCHEDULER else component},
                "reportingComponent": component,
                "reportingInstance": "",
            },
        )


def _again(store: Store, event: Object) -> None:
    if event.get("eventTime"):
        seen = (event.get("series") or {"count": 1})["count"] + 1
        event["series"] = {"count": seen, "lastObservedTime": store.clock.micro()}
        return
    event["count"] += 1
    event["lastTimestamp"] = store.clock.stamp()
