"""The API server's own errors: Status objects with the reason, details and message that the real one gives."""

from __future__ import annotations

import http
from typing import Any, NamedTuple

from tests.kubernetes.kinds import Resource


class Cause(NamedTuple):
    """One field error: FieldValueRequired, FieldValueInvalid and so on, as `details.causes` carries it."""

    reason: str
    message: str
    field: str


class ApiError(Exception):
    """A refused request. `text` is sent instead of a Status where the real server answers in plain text."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        text: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}
        self.text = text

    def status(self) -> dict[str, Any]:
        """Return the Status object."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if not self.reason:
            del body["reason"]
        if self.details:
            body["details"] = self.details
        return body


def qualified(resource: Resource) -> str:
    """Return `jobs.batch`, or `pods` in the core group."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _of(resource: Resource, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name} if name else {}
    if resource.group:
        found["group"] = resource.group
    return found | {"kind": resource.plural}


def not_found(resource: Resource, name: str) -> ApiError:
    """404 for an object that isn't there."""
    return ApiError(404, "NotFound", f'{qualified(resource)} "{name}" not found', details=_of(resource, name))


def not_on_node(name: str, sub: str) -> ApiError:
    """404 that a kubelet gives for a pod which it does not know (yet), as the API server hands it on."""
    message = f"the server could not find the requested resource ( pods/{sub} {name})"
    return ApiError(404, "NotFound", message, details={"name": name, "kind": f"pods/{sub}"})


def no_such_path() -> ApiError:
    """404 for a resource that the server doesn't serve, as of a CRD that isn't installed: plain text."""
    return ApiError(404, "NotFound", "404 page not found", text="404 page not found\n")


def already_exists(resource: Resource, name: str, *, deleting: bool = False) -> ApiError:
    """409 for a create of a taken name; the message says so where the holder is being deleted."""
    being = "object is being deleted: " if deleting else ""
    message = f'{being}{qualified(resource)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_of(resource, name))


def conflict(resource: Resource, name: str, why: str) -> ApiError:
    """409 for a precondition that doesn't hold."""
    message = f'Operation cannot be fulfilled on {qualified(resource)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_of(resource, name))


def forbidden(resource: Resource, name: str, why: str) -> ApiError:
    """403 of an admission plugin: quota, Pod Security, a missing service account."""
    message = f'{qualified(resource)} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, details=_of(resource, name))


def not_allowed(resource: Resource, verb: str, path: tuple[str, str, str], user: str) -> ApiError:
    """403 of RBAC; `path` is namespace, name and subresource."""
    namespace, name, sub = path
    what = f"{resource.plural}/{sub}" if sub else resource.plural
    where = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
    head = qualified(resource) + (f' "{name}"' if name else "")
    message = (
        f'{head} is forbidden: User "{user}" cannot {verb} resource "{what}" in API group "{resource.group}"{where}'
    )
    return ApiError(403, "Forbidden", message, details=_of(resource, name))


def unauthorized() -> ApiError:
    """401: no token, a wrong or an expired one."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def bad_request(message: str) -> ApiError:
    """400."""
    return ApiError(400, "BadRequest", message)


def invalid(resource: Resource, name: str, causes: list[Cause]) -> ApiError:
    """422 with every field that is wrong."""
    said = [f"{each.field}: {each.message}" for each in causes]
    joined = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details: dict[str, Any] = {"name": name, "kind": resource.kind}
    if resource.group:
        details["group"] = resource.group
    details["causes"] = [each._asdict() for each in causes]
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {joined}', details=details)


def expired(asked: int, oldest: int) -> ApiError:
    """410: the resourceVersion or continue token is older than what the server keeps."""
    return ApiError(410, "Expired", f"too old resource version: {asked} ({oldest})")


def too_many(retry_after: int) -> ApiError:
    """429 as the server's own flow control gives it: plain text and a Retry-After."""
    text = "Too many requests, please try again later.\n"
    return ApiError(429, "TooManyRequests", text.strip(), headers={"Retry-After": str(retry_after)}, text=text)


def internal(message: str, code: int = 500) -> ApiError:
    """500, or another 5xx, with the reason that this code has."""
    reason = {500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}.get(code, http.HTTPStatus(code).phrase)
    return ApiError(code, reason, message)
