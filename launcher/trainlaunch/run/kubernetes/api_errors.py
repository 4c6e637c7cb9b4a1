"""What can go wrong between here and a cluster, each with one clear error (TL522 to TL528)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.kinds import objects
from trainlaunch.run.kubernetes.kubeconfig import Access

FORBIDDEN = "TL525"
REFUSED = "TL526"
NO_SUCH_KIND = "TL527"
HTTP_BAD_REQUEST, HTTP_UNAUTHORIZED, HTTP_FORBIDDEN, HTTP_NOT_FOUND = 400, 401, 403, 404
HTTP_CONFLICT, HTTP_GONE, HTTP_TOO_MANY, HTTP_SERVER_ERROR = 409, 410, 429, 500
_RBAC = re.compile(r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)"')


class Unreachable(TargetUnavailable):
    """No answer came; `sent` says that the request may have arrived all the same."""

    def __init__(self, diagnostic: Diagnostic, *, sent: bool = False) -> None:
        self.sent = sent
        super().__init__([diagnostic])


class ApiRefused(TargetUnavailable):
    """The API server answered and said no: its HTTP status, reason, words and details."""

    def __init__(self, access: Access, what: str, status: int, answer: Mapping[str, Any]) -> None:
        self.status = status
        self.reason = str(answer.get("reason") or "")
        self.words = " ".join(str(answer.get("message") or f"HTTP status {status}").split())
        self.details: Mapping[str, Any] = answer.get("details") or {}
        super().__init__([_refusal(access, what, self)])

    @property
    def denied_by_rbac(self) -> bool:
        """Whether the user may not do it at all, whatever the object says."""
        return self.status == HTTP_FORBIDDEN and _RBAC.search(self.words) is not None

    @property
    def no_namespace(self) -> bool:
        """Whether the namespace does not exist."""
        return self.status == HTTP_NOT_FOUND and self.details.get("kind") == "namespaces"

    @property
    def no_such_kind(self) -> bool:
        """Whether the cluster does not know the kind: the path itself was not found, not an object of that name."""
        return self.status == HTTP_NOT_FOUND and not self.details.get("name")


class ExecRefused(Exception):
    """A command could not be run in a pod: why, as a clause; `forbidden` says that it never can be."""

    def __init__(self, words: str, *, forbidden: bool = False) -> None:
        self.forbidden = forbidden
        super().__init__(words)


def exec_refused(reason: str) -> ExecRefused:
    """Return the error for what the WebSocket library says: `Handshake status 500 … -+-+- headers -+-+- body`."""
    status, _, rest = " ".join(reason.split()).partition(" -+-+- ")
    if f"status {HTTP_FORBIDDEN}" in status:
        return ExecRefused("you may not run commands in pods (pods/exec is forbidden)", forbidden=True)
    said = re.search(r'"message": ?"((?:[^"\\]|\\.)*)"', rest)
    words = re.sub(r"\\+(.)", r"\1", said[1]) if said else status
    return ExecRefused(words.strip()[:160] or "the connection broke")


def answer_of(body: bytes) -> Mapping[str, Any]:
    """Return the Status that a refusal carries; a proxy in between may answer in plain text."""
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {"message": body[:300].decode(errors="replace").strip()}


def _refusal(access: Access, what: str, refused: ApiRefused) -> Diagnostic:
    says = f"the API server says: {refused.words}"
    if refused.status == HTTP_UNAUTHORIZED:
        return not_logged_in(access, says)
    if refused.denied_by_rbac:
        return _may_not(access, what, refused)
    if refused.no_namespace:
        name = refused.details.get("name") or ""
        return Diagnostic(
            "TL528",
            f"{access.words} has no namespace {name}",
            f"run `kubectl create namespace {name}`, or name another with --namespace",
            why=says,
        )
    if refused.no_such_kind:
        return Diagnostic(
            NO_SUCH_KIND,
            f"{access.words} can't {what}: it does not know the kind",
            f"install {_bringer(what)}, or set kubernetes.kind to job",
            why=says,
        )
    again = "try again later" if refused.status in {HTTP_TOO_MANY, 503, 504} else "change what it names"
    return Diagnostic(REFUSED, f"{access.words} refuses to {what}", f"{again}; the job was not started", why=says)


def _bringer(what: str) -> str:
    """Return what brings the kind that an attempt like `create JobSet mnist` names."""
    named = (each for each in objects().values() if each.controller and f" {each.name} " in f"{what} ")
    return next((each.controller for each in named), "the controller of that kind")


def _may_not(access: Access, what: str, refused: ApiRefused) -> Diagnostic:
    found = _RBAC.search(refused.words)
    asked = f"{found['verb']} {found['resource']}" if found else "create jobs"
    return Diagnostic(
        FORBIDDEN,
        f"you may not {what} in {access.words}",
        f"ask for a role that may `{asked}`; `kubectl auth can-i {asked}` tells when you have it",
        why=f"the API server says: {refused.words}",
    )


def not_logged_in(access: Access, why: str) -> Diagnostic:
    """Return the error for credentials that are missing, expired or can't be made."""
    return Diagnostic(
        "TL524",
        f"{access.words} does not take your credentials",
        "log in to the cluster again as your provider says (`aws sso login`, `gcloud auth login`, …), until "
        "`kubectl auth whoami` answers",
        why=why,
    )


def no_answer(access: Access, cause: BaseException, *, sent: bool = False) -> TargetUnavailable:
    """Return the error for a request that got no answer, from what the transport says."""
    words = " ".join(str(cause).split())
    kinds = {type(each).__name__ for each in _chain(cause)}
    if "SSLError" in kinds or "SSLCertVerificationError" in kinds or "CERTIFICATE" in words:
        return TargetUnavailable([_not_trusted(access, words)])
    place = access.server or "the address in its kubeconfig"
    if "NameResolutionError" in kinds or "gaierror" in kinds:
        why = f"the host name in {place} resolves to no address here"
    elif "refused" in words:
        why = f"the connection to {place} is refused: nothing listens there"
    elif "imeout" in "".join(kinds) or "timed out" in words:
        why = f"{place} does not answer in time"
    else:
        why = f"the connection to {place} broke: {words[:300]}"
    return Unreachable(
        Diagnostic(
            "TL522",
            f"{access.words} does not answer",
            "start the cluster or your VPN until `kubectl cluster-info` answers, or name another with --context",
            why=why,
        ),
        sent=sent,
    )


def _chain(cause: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    seen: BaseException | None = cause
    while seen is not None and seen not in found:
        found.append(seen)
        reason = getattr(seen, "reason", None)
        seen = reason if isinstance(reason, BaseException) else seen.__cause__ or seen.__context__
    return found


def _not_trusted(access: Access, words: str) -> Diagnostic:
    return Diagnostic(
        "TL523",
        f"no safe connection to {access.words} can be made",
        "get the kubeconfig from your provider's tool again: it holds the cluster's certificate-authority-data; behind "
        "a proxy that reads TLS, add its certificate there",
        why=f"TLS says: {words[:300]}",
    )
