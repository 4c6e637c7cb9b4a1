"""What the API server answers to requests that end: create, get, list, update, patch, delete; HTTP left out."""

from __future__ import annotations

import base64
import copy
import json
import uuid
from typing import Any, NamedTuple

from tests.kubernetes import schemas, selectors, validation
from tests.kubernetes.deletion import delete
from tests.kubernetes.kinds import JOBS, NAMESPACES, PODS, REVIEWS, SELF_REVIEWS, Kinds, Resource
from tests.kubernetes.kueue import hold, queued
from tests.kubernetes.statuses import (
    ApiError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_allowed,
    not_found,
)
from tests.kubernetes.store import Object, Store


class Request(NamedTuple):
    """One request of a resource, as the server's authorisation sees it."""

    verb: str
    resource: Resource
    namespace: str
    name: str
    sub: str
    query: dict[str, str]
    body: Any = None

    @property
    def what(self) -> str:
        """`pods`, or `pods/log`."""
        return f"{self.resource.plural}/{self.sub}" if self.sub else self.resource.plural


class Answered(NamedTuple):
    """A status code, an object, and the warnings that go with it."""

    code: int
    body: Object
    warnings: list[str]


class Api:
    """The verbs over one store. `queue_message` makes Kueue hold each Job of a queue, and says why."""

    def __init__(self, store: Store, kinds: Kinds) -> None:
        self.store = store
        self.kinds = kinds
        self.forbidden: set[tuple[str, str]] = set()
        self.rules: list[dict[str, list[str]]] | None = None
        self.refuse_pods = ""
        self.queue_message = ""
        self.user = "system:serviceaccount:team:trainer"

    def authorize(self, asked: Request) -> None:
        """Raise ApiError (403) for what this user may not do."""
        if not self.may(asked.verb, asked.resource.group, asked.what):
            path = (asked.namespace, asked.name, asked.sub)
            raise not_allowed(asked.resource, asked.verb, path, self.user)

    def may(self, verb: str, group: str, what: str) -> bool:
        """Whether the user's role allows it; everybody may ask who they are and what they may do."""
        if (verb, what) in self.forbidden:
            return False
        everybodys = what in (REVIEWS.plural, SELF_REVIEWS.plural)
        return (
            everybodys
            or self.rules is None
            or any(
                verb in rule["verbs"] and group in rule["apiGroups"] and what in rule["resources"]
                for rule in self.rules
            )
        )

    def answer(self, asked: Request) -> Answered:
        """Answer a request that is neither a watch, a log nor an exec."""
        if asked.verb == "create":
            return self._create(asked)
        if asked.verb == "list":
            return Answered(200, self._list(asked), [])
        if asked.verb == "get":
            return Answered(200, self.store.get(asked.resource, asked.namespace, asked.name), [])
        if asked.verb == "delete":
            return Answered(200, self._delete(asked, asked.name), [])
        if asked.verb == "deletecollection":
            found = self._list(asked)
            for each in found["items"]:
                self._delete(asked._replace(namespace=each["metadata"].get("namespace", "")), each["metadata"]["name"])
            return Answered(200, found, [])
        return Answered(200, self._change(asked), [])

    def _create(self, asked: Request) -> Answered:
        made, resource = copy.deepcopy(asked.body), asked.resource
        if not isinstance(made, dict):
            raise bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
        if resource == REVIEWS:
            return Answered(201, self._review(made), [])
        if resource == SELF_REVIEWS:
            return Answered(201, made | {"status": {"userInfo": {"username": self.user}}}, [])
        warnings = self._decoded(asked, made)
        made.setdefault("metadata", {})
        self._in_namespace(asked, made)
        if resource == PODS and self.refuse_pods:
            raise forbidden(PODS, made["metadata"].get("name", ""), self.refuse_pods)
        wrong = validation.problems(resource, made)
        if wrong:
            raise invalid(resource, made["metadata"].get("name", ""), wrong)
        self._defaulted(resource, made)
        self._suspended(resource, made)
        name = made["metadata"].get("name", "")
        if asked.query.get("dryRun") == "All":
            if self.store.find(resource, asked.namespace, name) is not None:
                raise already_exists(resource, name)
            made["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": self.store.clock.stamp()}
            made["metadata"] |= {"namespace": asked.namespace} if resource.namespaced else {}
            return Answered(201, made, warnings)
        stored = self.store.create(resource, asked.namespace, made)
        if resource == JOBS and self.queue_message and queued(stored):
            hold(self.store, stored, self.queue_message)
        return Answered(201, stored, warnings)

    def _decoded(self, asked: Request, made: Object) -> list[str]:
        resource, mode = asked.resource, asked.query.get("fieldValidation", "Warn")
        if made.get("apiVersion", resource.api_version) != resource.api_version:
            raise bad_request(
                f"the API version in the data ({made['apiVersion']}) does not match the expected API version "
                f"({resource.api_version})"
            )
        made["apiVersion"], made["kind"] = resource.api_version, resource.kind
        unknown = schemas.check(resource, made, strict=mode == "Strict")
        return unknown if mode == "Warn" else []

    def _in_namespace(self, asked: Request, made: Object) -> None:
        if not asked.resource.namespaced:
            return
        if made["metadata"].get("namespace", asked.namespace) != asked.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        space = self.store.find(NAMESPACES, "", asked.namespace)
        if space is None:
            raise not_found(NAMESPACES, asked.namespace)
        if "deletionTimestamp" in space["metadata"]:
            why = f"unable to create new content in namespace {asked.namespace} because it is being terminated"
            raise forbidden(asked.resource, made["metadata"].get("name", ""), why)

    def _defaulted(self, resource: Resource, made: Object) -> None:
        spec = made.get("spec") or {}
        if resource == PODS:
            made["status"] = {"phase": "Pending", "qosClass": "Guaranteed"}
            spec.setdefault("restartPolicy", "Always")
            spec.setdefault("terminationGracePeriodSeconds", 30)
        elif resource == JOBS:
            made["status"] = {}
            for key, value in {"parallelism": 1, "completions": 1, "backoffLimit": 6, "suspend": False}.items():
                spec.setdefault(key, value)
            spec.setdefault("completionMode", "NonIndexed")
        elif "status" not in made and any(each == "status" for each in resource.subresources):
            made["status"] = {}

    def _suspended(self, resource: Resource, made: Object) -> None:
        """Do what Kueue's webhook does to an object of a queue, where it is installed."""
        holder = {"PyTorchJob": "runPolicy"}.get(resource.kind)
        if resource != PODS and self.queue_message and queued(made):
            spec = made.setdefault("spec", {})
            (spec.setdefault(holder, {}) if holder else spec)["suspend"] = True

    def _review(self, made: Object) -> Object:
        wanted = made.get("spec", {}).get("resourceAttributes", {})
        what = "/".join(filter(None, (wanted.get("resource", ""), wanted.get("subresource", ""))))
        return made | {"status": {"allowed": self.may(wanted.get("verb", ""), wanted.get("group", ""), what)}}

    def _list(self, asked: Request) -> Object:
        query, resource = asked.query, asked.resource
        labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
        selectors.check(resource.kind, labels, fields)
        with self.store.changed:
            version = self.store.version
            found = [
                each for each in self.store.all(resource, asked.namespace) if selectors.matches(each, labels, fields)
            ]
        meta: dict[str, Any] = {"resourceVersion": str(version)}
        after = ""
        if query.get("continue"):
            token = json.loads(base64.urlsafe_b64decode(query["continue"]))
            after, meta["resourceVersion"] = token["start"], str(token["rv"])
        found = [each for each in found if _place(each) > after]
        limit = int(query.get("limit") or 0)
        if limit and len(found) > limit:
            token = {"v": "meta.k8s.io/v1", "rv": int(meta["resourceVersion"]), "start": _place(found[limit - 1])}
            meta["continue"] = base64.urlsafe_b64encode(json.dumps(token).encode()).decode()
            found = found[:limit]
        for each in found:  # the items of a typed list carry neither
            if resource.group in ("", "batch"):
                each.pop("kind", None)
                each.pop("apiVersion", None)
        return {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": meta, "items": found}

    def _delete(self, asked: Request, name: str) -> Object:
        options = dict(asked.body or {})
        for key in ("propagationPolicy", "gracePeriodSeconds"):
            if key in asked.query:
                options.setdefault(key, int(asked.query[key]) if key == "gracePeriodSeconds" else asked.query[key])
        thing = self.store.get(asked.resource, asked.namespace, name)
        if asked.query.get("dryRun") == "All" or options.get("dryRun"):
            return thing
        if asked.resource == NAMESPACES:
            now = self.store.clock.stamp()
            return self.store.update(NAMESPACES, "", name, lambda new: new["metadata"].update(deletionTimestamp=now))
        return delete(self.store, asked.resource, (asked.namespace, name), options)

    def _change(self, asked: Request) -> Object:
        old = self.store.get(asked.resource, asked.namespace, asked.name)
        if asked.verb == "update":
            seen = asked.body["metadata"].get("resourceVersion")
            if seen and seen != old["metadata"]["resourceVersion"]:
                why = "the object has been modified; please apply your changes to the latest version and try again"
                raise conflict(asked.resource, asked.name, why)

        def change(new: Object) -> None:
            if asked.verb == "update":
                new.clear()
                new.update(copy.deepcopy(asked.body))
            else:
                _merge(new, asked.body)
            if asked.resource == JOBS and new["spec"]["template"] != old["spec"]["template"]:
                wrong = validation.invalid("spec.template", "...", "field is immutable")
                raise invalid(JOBS, asked.name, [wrong])

        return self.store.update(asked.resource, asked.namespace, asked.name, change)


def _place(thing: Object) -> str:
    return f"{thing['metadata'].get('namespace', '')}/{thing['metadata']['name']}"


def _merge(into: dict[str, Any], patch: dict[str, Any]) -> None:
    """Apply a JSON Merge Patch."""
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def error_of(problem: Exception) -> ApiError:
    """Return what the server answers when it fails itself."""
    return ApiError(500, "InternalError", f"Internal error occurred: {problem!r}")
