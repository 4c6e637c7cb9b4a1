"""The only place that imports the official Kubernetes client: its configuration, connections and exec.

Objects stay plain JSON: the client's models know no custom resources, and drop fields that are newer than themselves.
"""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.clock import SYSTEM_CLOCK, Clock
from trainlaunch.run.kubernetes.api_errors import (
    FORBIDDEN,
    HTTP_BAD_REQUEST,
    HTTP_SERVER_ERROR,
    HTTP_TOO_MANY,
    HTTP_UNAUTHORIZED,
    REFUSED,
    ApiRefused,
    ExecRefused,
    answer_of,
    exec_refused,
    no_answer,
    not_logged_in,
)
from trainlaunch.run.kubernetes.kubeconfig import Access

CONNECT_SECONDS, READ_SECONDS, EXEC_SECONDS = 10.0, 30.0, 20.0
MAX_TRIES = 6
MAX_PAUSE = 30.0
Query = Sequence[tuple[str, str]]


class Cluster:
    """An API server and the namespace that is meant; threads may share it. Who waits for it waits by its clock."""

    def __init__(self, access: Access, namespace: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self.access = access
        self.namespace = namespace
        self.clock = clock
        self._lock = threading.Lock()
        self._api: Any = None

    @property
    def words(self) -> str:
        """The place as a sentence names it."""
        return f"namespace {self.namespace} of {self.access.words}"

    def get(self, path: str, query: Query = (), *, what: str) -> Any:
        """Return what GET answers; `what` names the attempt in an error, as in `list pods`."""
        return self.request("GET", path, query, what=what)

    def request(self, method: str, path: str, query: Query = (), *, what: str, body: Any = None) -> Any:
        """Return the answer as plain values. Raises ApiRefused, Unreachable, or TargetUnavailable for TLS and logins.

        A server that asks to be left alone for a while is asked again after it.
        """
        answer = self._answered(method, path, query, what, body, READ_SECONDS)
        try:
            data = answer.data
        except _transport_errors() as cause:
            raise no_answer(self.access, cause, sent=method != "GET") from cause
        return json.loads(data) if data else {}

    def tried(self, path: str, query: Query, body: Any, *, what: str) -> tuple[Any, list[str]]:
        """Return the answer to a POST and the API server's warnings about it, like those of Pod Security."""
        answer = self._answered("POST", path, query, what, body, READ_SECONDS)
        try:
            data = answer.data
        except _transport_errors() as cause:
            raise no_answer(self.access, cause, sent=True) from cause
        warnings = [_warning(each) for each in answer.headers.getlist("Warning")]
        return (json.loads(data) if data else {}), warnings

    @contextlib.contextmanager
    def stream(self, path: str, query: Query, *, what: str, quiet_seconds: float) -> Iterator[Iterator[bytes]]:
        """Give the body as it comes; one that is cut raises Unreachable, as does silence of `quiet_seconds`."""
        answer = self._answered("GET", path, query, what, None, quiet_seconds)
        try:
            yield self._pieces(answer)
        finally:
            answer.close()

    def _pieces(self, answer: Any) -> Iterator[bytes]:
        try:
            while piece := answer.read1(1 << 16):
                yield piece
        except _transport_errors() as cause:
            raise no_answer(self.access, cause) from cause

    def _answered(self, method: str, path: str, query: Query, what: str, body: Any, read_seconds: float) -> Any:
        logged_in_again = False
        for attempt in range(1, MAX_TRIES + 1):
            answer = self._sent(method, path, query, body, read_seconds)
            if answer.status < HTTP_BAD_REQUEST:
                return answer
            with contextlib.closing(answer):
                refused = ApiRefused(self.access, what, answer.status, answer_of(self._body(answer)))
            if answer.status == HTTP_UNAUTHORIZED and not logged_in_again:
                logged_in_again = True  # the token may just have expired
                self._forget()
                continue
            pause = _asked_pause(answer, method)
            if pause is None or attempt == MAX_TRIES:
                raise refused
            time.sleep(self.clock.real(pause))
        raise AssertionError("the last try returns or raises")

    def _body(self, answer: Any) -> bytes:
        try:
            data: bytes = answer.data
        except _transport_errors():
            return b""
        return data

    def _sent(self, method: str, path: str, query: Query, body: Any, read_seconds: float) -> Any:
        import urllib3

        api = self._client()
        url = f"{api.configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": "application/json, */*", "User-Agent": "trainlaunch", **self._authorization(api)}
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            return api.rest_client.pool_manager.request(
                method,
                url,
                body=None if body is None else json.dumps(body),
                headers=headers,
                preload_content=False,
                retries=False,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds),
            )
        except _transport_errors() as cause:
            raise no_answer(self.access, cause, sent=method != "GET") from cause

    def _authorization(self, api: Any) -> dict[str, str]:
        with self._lock, _overheard([]):  # a login command may run again here; where it fails, 401 follows
            settings: Mapping[str, Any] = api.configuration.auth_settings()
        return {each["key"]: each["value"] for each in settings.values() if each.get("value")}

    def _client(self) -> Any:
        with self._lock:
            if self._api is None:
                self._api = _connected(self.access)
            return self._api

    def _forget(self) -> None:
        with self._lock:
            self._api = None

    def close(self) -> None:
        """Close all connections; jobs go on."""
        with self._lock:
            if self._api is not None:
                self._api.rest_client.pool_manager.clear()

    def execute(self, pod: str, container: str, command: Sequence[str]) -> str:
        """Return what a command prints in a running container. Raises ExecRefused with the reason."""
        text: str = self._exec(pod, container, command, stdin=False, stderr=False, _request_timeout=EXEC_SECONDS)
        return text

    def open_command(self, pod: str, container: str, command: Sequence[str], *, terminal: bool) -> Any:
        """Start a command in a running container, and return the client of its WebSocket.

        Raises TargetUnavailable (TL525, TL526).
        """
        streams = {"stdin": True, "stderr": not terminal, "tty": terminal}
        try:
            return self._exec(pod, container, command, **streams, binary=True, _preload_content=False)
        except ExecRefused as refused:
            code = FORBIDDEN if refused.forbidden else REFUSED
            fix = (
                "ask for a role that may `get` and `create` pods/exec" if refused.forbidden else "try again, if it runs"
            )
            message = f"no command can be run in pod {pod} in {self.words}"
            raise TargetUnavailable([Diagnostic(code, message, fix, why=str(refused))]) from refused

    def _exec(self, pod: str, container: str, command: Sequence[str], **options: Any) -> Any:
        from kubernetes.client import ApiException, CoreV1Api
        from kubernetes.stream import stream

        try:
            return stream(
                CoreV1Api(self._client()).connect_get_namespaced_pod_exec,
                pod,
                self.namespace,
                container=container,
                command=list(command),
                stdout=True,
                **{"tty": False, **options},
            )
        except (ApiException, OSError, ValueError) as cause:
            raise exec_refused(str(getattr(cause, "reason", None) or cause)) from cause


def _connected(access: Access) -> Any:
    """Return a client of the official package that is set up for a cluster, its login plugin run."""
    from kubernetes import config
    from kubernetes.client import ApiClient, Configuration

    made = Configuration()
    said: list[str] = []
    with _overheard(said):
        try:
            if access.files:
                config.load_kube_config(config_file=access.files, context=access.context, client_configuration=made)
            else:
                config.load_incluster_config(client_configuration=made)
        except (config.ConfigException, OSError, ValueError, KeyError, TypeError) as cause:
            words = " ".join([*said, str(cause)])
            raise TargetUnavailable([not_logged_in(access, f"the kubeconfig can't be used: {words}")]) from cause
    if said and not made.api_key and not made.cert_file:
        raise TargetUnavailable([not_logged_in(access, f"the login command of the kubeconfig fails: {said[-1]}")])
    if access.files and not made.verify_ssl:
        _hush_unverified()
    made.socket_options = _keepalive()
    return ApiClient(made)


@contextlib.contextmanager
def _overheard(said: list[str]) -> Iterator[None]:
    """Collect what the official package logs: it does not raise when a login plugin fails."""

    class _Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(" ".join(record.getMessage().split()))

    root, ear = logging.getLogger(), _Ear(logging.ERROR)
    others = root.handlers[:]
    root.handlers[:] = [ear]
    try:
        yield
    finally:
        root.handlers[:] = others


def _hush_unverified() -> None:
    """Leave out urllib3's warning on each request: insecure-skip-tls-verify was the user's own word."""
    import urllib3

    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)


def _keepalive() -> list[tuple[int, int, int]]:
    """Return socket options that find a dead connection within two minutes, also while a log is silent."""
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):  # Linux
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options


def _transport_errors() -> tuple[type[Exception], ...]:
    import urllib3

    return (urllib3.exceptions.HTTPError, OSError)


def _asked_pause(answer: Any, method: str) -> float | None:
    """Return how long to wait before the same request again; None where it would get the same answer."""
    stated = answer.headers.get("Retry-After", "")
    overloaded = answer.status == HTTP_TOO_MANY or (answer.status >= HTTP_SERVER_ERROR and stated)
    if not overloaded and not (answer.status >= HTTP_SERVER_ERROR and method == "GET"):
        return None
    return min(float(stated), MAX_PAUSE) if stated.isdigit() else 1.0


def _warning(header: str) -> str:
    """Return the words of `299 - "words"`."""
    quoted = header.partition('"')[2].rpartition('"')[0]
    return (quoted or header).replace('\\"', '"')
