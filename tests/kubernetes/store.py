"""Objects, their resourceVersions and the history that watches read: what etcd and the watch cache are to a server."""

from __future__ import annotations

import copy
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any, NamedTuple

from tests.kubernetes.kinds import NAMESPACES, Resource
from tests.kubernetes.statuses import already_exists, expired, not_found

SPEED = 10.0
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # of generated names
Object = dict[str, Any]
Key = tuple[str, str, str, str]


class Change(NamedTuple):
    """One entry of the history; `old` is None for an addition."""

    version: int
    type: str
    resource: Resource
    new: Object
    old: Object | None


class Clock:
    """The cluster's time: it runs SPEED times as fast as ours, and may be off from ours by `skew` seconds."""

    def __init__(self) -> None:
        self.skew = 0.0
        self._epoch, self._begun = time.time_ns(), time.monotonic_ns()

    def time(self) -> float:
        """Return seconds since the epoch."""
        return self.nanoseconds() / 1e9

    def nanoseconds(self) -> int:
        """Return nanoseconds since the epoch."""
        return self._epoch + int((time.monotonic_ns() - self._begun) * SPEED + self.skew * 1e9)

    def real(self, seconds: float) -> float:
        """Return how long `seconds` of the cluster last in the world."""
        return seconds / SPEED

    def stamp(self, after: float = 0.0) -> str:
        """Return metav1.Time, in whole seconds, some seconds from now."""
        return datetime.fromtimestamp(self.time() + after, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def micro(self) -> str:
        """Return metav1.MicroTime."""
        return datetime.fromtimestamp(self.time(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Store:
    """All objects. Every read gives a copy; `changed` is notified at each write."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.changed = threading.Condition(threading.RLock())
        self._objects: dict[Key, Object] = {}
        self._history: list[Change] = []
        self._version = 1000
        self._oldest = 0

    @property
    def version(self) -> int:
        """The newest resourceVersion."""
        with self.changed:
            return self._version

    def create(self, resource: Resource, namespace: str, made: Object) -> Object:
        """Add an object under its name, or under one from generateName. Raises ApiError where the name is taken."""
        made = copy.deepcopy(made)
        meta = made["metadata"]
        with self.changed:
            if not meta.get("name"):
                meta["name"] = meta["generateName"] + "".join(random.sample(_LETTERS, 5))
            key = _key(resource, namespace, meta["name"])
            if key in self._objects:
                deleting = "deletionTimestamp" in self._objects[key]["metadata"]
                raise already_exists(resource, meta["name"], deleting=deleting)
            if resource.namespaced:
                meta["namespace"] = namespace
            meta["uid"] = str(uuid.uuid4())
            meta["creationTimestamp"] = self.clock.stamp()
            meta["generation"] = 1
            self._write(resource, key, "ADDED", made, None)
            return copy.deepcopy(made)

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return one object; raises ApiError (404)."""
        with self.changed:
            key = _key(resource, namespace, name)
            if key not in self._objects:
                raise not_found(resource, name)
            return copy.deepcopy(self._objects[key])

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return one object, or None."""
        with self.changed:
            return copy.deepcopy(self._objects.get(_key(resource, namespace, name)))

    def update(self, resource: Resource, namespace: str, name: str, change: Callable[[Object], None]) -> Object:
        """Let `change` edit one object in place; nothing is written where it changes nothing."""
        with self.changed:
            old = self.get(resource, namespace, name)
            new = copy.deepcopy(old)
            change(new)
            if new != old:
                self._write(resource, _key(resource, namespace, name), "MODIFIED", new, old)
            return copy.deepcopy(new)

    def remove(self, resource: Resource, namespace: str, name: str) -> None:
        """Take one object out; nothing where it is gone already."""
        with self.changed:
            old = self._objects.pop(_key(resource, namespace, name), None)
            if old is not None:
                self._note(Change(self._next(), "DELETED", resource, self._versioned(old), old))

    def all(self, resource: Resource, namespace: str = "") -> list[Object]:
        """Return the objects of one kind by name, of one namespace or of all."""
        with self.changed:
            keys = [each for each in sorted(self._objects) if each[:2] == resource.key]
            return [copy.deepcopy(self._objects[each]) for each in keys if namespace in ("", each[2])]

    def everything(self) -> Iterator[tuple[Key, Object]]:
        """Yield every object with its key: group, plural, namespace, name."""
        with self.changed:
            yield from [(key, copy.deepcopy(each)) for key, each in self._objects.items()]

    def has_namespace(self, name: str) -> bool:
        """Return whether a namespace exists."""
        return self.find(NAMESPACES, "", name) is not None

    def since(self, version: int) -> list[Change]:
        """Return what changed after a resourceVersion; raises ApiError (410) where that is too long ago."""
        with self.changed:
            if version < self._oldest:
                raise expired(version, self._oldest)
            return [each for each in self._history if each.version > version]

    def compact(self) -> None:
        """Forget the history, as etcd does every five minutes: a watch from before it gets 410."""
        with self.changed:
            self._oldest = self._next()
            self._history.clear()
            self.changed.notify_all()

    def wait(self, version: int, timeout: float) -> bool:
        """Block until something is newer than `version`; return whether there is."""
        with self.changed:
            return self.changed.wait_for(lambda: self._version > version, timeout)

    def _write(self, resource: Resource, key: Key, change: str, new: Object, old: Object | None) -> None:
        version = self._next()
        new["metadata"]["resourceVersion"] = str(version)
        self._objects[key] = new
        self._note(Change(version, change, resource, copy.deepcopy(new), old))

    def _note(self, change: Change) -> None:
        self._history.append(change)
        self.changed.notify_all()

    def _next(self) -> int:
        self._version += 1
        return self._version

    def _versioned(self, old: Object) -> Object:
        gone = copy.deepcopy(old)
        gone["metadata"]["resourceVersion"] = str(self._version)
        return gone


def _key(resource: Resource, namespace: str, name: str) -> Key:
    return (*resource.key, namespace if resource.namespaced else "", name)
