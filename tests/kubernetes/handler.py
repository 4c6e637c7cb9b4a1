"""HTTP in front of the API: paths and queries in, JSON, streams and upgrades out."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import parse_qs, urlsplit

from tests.kubernetes import interactive, websocket
from tests.kubernetes.api import Answered, Request, error_of
from tests.kubernetes.faults import Fault
from tests.kubernetes.kinds import PODS, Resource
from tests.kubernetes.logs import LogOptions
from tests.kubernetes.statuses import (
    ApiError,
    bad_request,
    internal,
    no_such_path,
    not_found,
    not_on_node,
    unauthorized,
)
from tests.kubernetes.store import Object
from tests.kubernetes.streams import Cut, send_log, send_watch

if TYPE_CHECKING:
    from tests.kubernetes.server import FakeCluster

_PATH = re.compile(r"^/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))/(?P<rest>.+)$")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.2", "platform": "linux/amd64"}


class Handler(BaseHTTPRequestHandler):
    """One connection; HTTP/1.1 with keep-alive."""

    protocol_version = "HTTP/1.1"

    @property
    def cluster(self) -> FakeCluster:
        """The cluster that it belongs to."""
        found: FakeCluster = self.server.cluster  # type: ignore[attr-defined]
        return found

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """Answer a request of any method."""
        try:
            self._answer()
        except ApiError as refused:
            self._refuse(refused)
        except Cut:
            self.close_connection = True

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815

    def _answer(self) -> None:
        body = self._body()
        if self.cluster.token and self.headers.get("Authorization") != f"Bearer {self.cluster.token}":
            raise unauthorized()
        parts = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
        if parts.path in ("/version", "/version/"):
            return self._send(Answered(200, _VERSION, []))
        if parts.path in ("/healthz", "/livez", "/readyz"):
            return self._send_bytes(200, b"ok", {"Content-Type": "text/plain"})
        discovered = self.cluster.kinds.discovery(parts.path.rstrip("/"))
        if discovered is not None:
            return self._send(Answered(200, discovered, []))
        asked = self._request(parts.path, query, body)
        self.cluster.requests.append(asked)
        fault = self.cluster.faults.take(asked.verb, asked.what)
        if fault is not None and fault.answer is not None:
            raise fault.answer
        self.cluster.api.authorize(asked)
        return self._perform(asked, fault)

    def _perform(self, asked: Request, fault: Fault | None) -> None:
        if asked.verb == "watch":
            return send_watch(self, self.cluster.store, asked, fault)
        if asked.resource == PODS and asked.sub == "log":
            return self._log(asked, fault)
        if asked.resource == PODS and asked.sub == "exec":
            return self._exec(asked)
        if asked.sub not in ("", "status"):
            raise not_found(asked.resource, asked.name)
        try:
            return self._send(self.cluster.api.answer(asked))
        except (KeyError, TypeError, AttributeError) as problem:
            raise error_of(problem) from problem

    def _body(self) -> Any:
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length) if length else b""
        if length > 3 << 20:
            raise ApiError(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
        try:
            return json.loads(raw) if raw else None
        except ValueError as cause:
            raise bad_request(f"couldn't get version/kind; json parse error: {cause}") from cause

    def _request(self, path: str, query: dict[str, str], body: Any) -> Request:
        found = _PATH.match(path)
        if found is None:
            raise no_such_path()
        group, version = found["group"] or "", found["core"] or found["version"]
        parts = found["rest"].strip("/").split("/")
        namespace = ""
        if parts[0] == "namespaces" and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        resource = self.cluster.kinds.find(group, version, parts[0])
        name, sub = [*parts[1:], "", ""][:2]
        if resource is None:
            self._unknown(Resource(group, version, parts[0], ""), (namespace, name, sub), query)
        verb = self._verb(resource, name, sub, query)
        return Request(verb, resource, namespace, name, sub, query, body)

    def _unknown(self, resource: Resource, path: tuple[str, str, str], query: dict[str, str]) -> NoReturn:
        """Refuse a kind that isn't there: whether somebody may ask for it is decided before that is looked up."""
        self.cluster.api.authorize(Request(self._verb(resource, *path[1:], query), resource, *path, query))
        raise no_such_path()

    def _verb(self, resource: Resource, name: str, sub: str, query: dict[str, str]) -> str:
        if resource == PODS and sub == "exec":
            return "get" if self.command == "GET" else "create"
        if self.command == "DELETE":
            return "delete" if name else "deletecollection"
        if self.command != "GET":
            return _VERBS[self.command]
        if query.get("watch") in ("1", "true", "True"):
            return "watch"
        return "get" if name else "list"

    def _pod(self, asked: Request) -> tuple[Object, str]:
        """Return the pod of a request and the name of its container."""
        pod = self.cluster.store.get(PODS, asked.namespace, asked.name)
        names = [each["name"] for each in pod["spec"]["containers"]]
        name = asked.query.get("container", "")
        if not name and len(names) > 1:
            listed = " ".join(names)
            raise bad_request(f"a container name must be specified for pod {asked.name}, choose one of: [{listed}]")
        if name and name not in names:
            raise bad_request(f"container {name} is not valid for pod {asked.name}")
        self._on_node(pod, asked, name or names[0])
        return pod, name or names[0]

    def _on_node(self, pod: Object, asked: Request, container: str) -> None:
        """Raise what the API server answers where the pod's kubelet can't be reached, or does not know the pod."""
        kubelet, lost = self.cluster.kubelet, pod["spec"].get("nodeName") in self.cluster.lost_nodes
        if lost or kubelet.is_away:
            verb = "containerLogs" if asked.sub == "log" else asked.sub
            where = f"https://10.0.0.1:10250/{verb}/{asked.namespace}/{asked.name}/{container}"
            why = "no route to host" if lost else "connection refused"
            raise internal(f'Get "{where}": dial tcp 10.0.0.1:10250: connect: {why}')
        if kubelet.knows_nothing:
            raise not_on_node(asked.name, asked.sub)

    def _log(self, asked: Request, fault: Fault | None) -> None:
        pod, container = self._pod(asked)
        if not pod["spec"].get("nodeName"):
            return self._send_bytes(204, b"", {})
        for each in pod["status"].get("containerStatuses") or []:
            waiting = each["state"].get("waiting") if each["name"] == container else None
            if waiting is not None:
                known = {
                    "ImagePullBackOff": "trying and failing to pull image",
                    "ErrImagePull": "image can't be pulled",
                }
                why = known.get(waiting["reason"], waiting["reason"])
                raise bad_request(f'container "{container}" in pod "{asked.name}" is waiting to start: {why}')
        if asked.query.get("previous") in ("true", "1", "True"):
            raise bad_request(f'previous terminated container "{container}" in pod "{asked.name}" not found')
        options = LogOptions.of_query(asked.query, self.cluster.clock.time())
        kubelet = self.cluster.kubelet
        began = kubelet.restarts
        return send_log(self, kubelet.log_of(pod).read(options), fault, cut=lambda: kubelet.restarts != began)

    def _exec(self, asked: Request) -> None:
        self.cluster.api.authorize(asked._replace(verb="create"))  # beside that of its GET, since 1.35
        pod, container = self._pod(asked)
        if pod["status"].get("phase") != "Running" or self.cluster.container_gone:
            raise internal(f'unable to upgrade connection: container not found ("{container}")')
        chosen = websocket.accept(self)
        command = parse_qs(urlsplit(self.path).query, keep_blank_values=True)["command"]
        if asked.query.get("stdin") in ("true", "True", "1"):
            env = {
                each["name"]: each["value"] for each in pod["spec"]["containers"][0].get("env") or () if "value" in each
            }
            terminal = asked.query.get("tty") in ("true", "True", "1")
            interactive.serve(self, command, env, terminal=terminal, closes=chosen.startswith("v5"))
            return
        websocket.answer_exec(self, self.cluster.exec(pod, command))

    def _refuse(self, refused: ApiError) -> None:
        if refused.text:
            self._send_bytes(refused.code, refused.text.encode(), {"Content-Type": "text/plain"} | refused.headers)
        else:
            body = json.dumps(refused.status()).encode()
            self._send_bytes(refused.code, body, {"Content-Type": "application/json"} | refused.headers)

    def _send(self, answered: Answered) -> None:
        headers = {"Content-Type": "application/json"}
        if answered.warnings:
            quoted = (each.replace('"', '\\"') for each in answered.warnings)
            headers["Warning"] = ", ".join(f'299 - "{each}"' for each in quoted)
        self._send_bytes(answered.code, json.dumps(answered.body).encode(), headers)

    def _send_bytes(self, code: int, body: bytes, headers: dict[str, str]) -> None:
        try:
            self.send_response(code)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True
