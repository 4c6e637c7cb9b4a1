"""A Kubernetes API server for tests: real HTTP, the API's own objects and errors, and a cluster that a test directs.

    with FakeCluster() as cluster:
        cluster.pods_do(lambda pod: (pod.say("hello\\n"), pod.exit(3)))
        ... KUBECONFIG=cluster.kubeconfig(folder / "config") trainlaunch up job.yaml --target kubernetes

What it models was read from the published API conventions and from Kubernetes 1.36's own code, and measured on a node
(names of pods, Status texts, order of conditions); what a test needs beyond that it says by `faults` and by scripts.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from tests import plain_yaml
from tests.kubernetes import kueue
from tests.kubernetes.api import Api, Request
from tests.kubernetes.deletion import collect_garbage
from tests.kubernetes.faults import Fault, Faults
from tests.kubernetes.handler import Handler
from tests.kubernetes.jobs import JobController
from tests.kubernetes.kinds import NAMESPACES, PODS, RESOURCES, Kinds
from tests.kubernetes.operators import Operators
from tests.kubernetes.pods import Kubelet, Pod, Script
from tests.kubernetes.processes import runs_its_command
from tests.kubernetes.store import Clock, Object, Store
from tests.kubernetes.tls import certificate, server_context
from tests.kubernetes.websocket import Answer

NAMESPACE = "team"
Exec = Callable[[Object, list[str]], Answer]


class FakeCluster:
    """The server, its controllers and its one node. Pods run their own command on this host unless told otherwise."""

    def __init__(self, *, tls: bool = False) -> None:
        self.tls = tls
        self.clock = Clock()
        self.store = Store(self.clock)
        self.kinds = Kinds()
        self.faults = Faults()
        self.api = Api(self.store, self.kinds)
        self.kubelet = Kubelet(self.store)
        self.kubelet.script = runs_its_command
        self.jobs = JobController(self.store)
        self.operators = Operators(self.store)
        self.token = "a-token-of-the-test"
        self.requests: list[Request] = []
        self.lost_nodes: set[str] = set()
        self.exec: Exec = _health
        self.container_gone = False  # for commands in it: it has ended, and no status says so yet
        self.port = 0
        self._http: _Http | None = None
        self._running = True
        for name in (NAMESPACE, "default", "kube-system"):
            self.add_namespace(name)

    def __enter__(self) -> FakeCluster:
        self.start()
        threading.Thread(target=self._control, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running = False
        for pod in list(self.kubelet.pods.values()):
            pod.go()
        self.stop()
        if kind is None and self.kubelet.failures:
            raise self.kubelet.failures[0]

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Answer requests, on the port of before where there was one."""
        self._http = _Http(("127.0.0.1", self.port), Handler, self)
        self.port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections and drop those that are open; the cluster itself goes on."""
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http.drop_all()
            self._http = None

    def restart_after(self, seconds: float) -> None:
        """Be away for a while, in the background."""
        self.stop()
        threading.Timer(self.clock.real(seconds), self.start).start()

    def kubeconfig(self, path: Path, namespace: str = NAMESPACE, *, trusted: bool = True, **user: Any) -> Path:
        """Write a kubeconfig whose current context is `fake`; keywords replace the user's token."""
        cluster = {"server": self.url}
        if self.tls and trusted:
            cluster["certificate-authority"] = str(certificate())
        context = {"cluster": "fake", "user": "trainer"} | ({"namespace": namespace} if namespace else {})
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": cluster}],
            "users": [{"name": "trainer", "user": user or {"token": self.token}}],
            "contexts": [{"name": "fake", "context": context}],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(plain_yaml.dump(config))
        return path

    def pods_do(self, *scripts: Script) -> None:
        """Give pods their scripts: the first pod of each index the first, its replacement the next; the last stays."""

        def by_attempt(pod: Pod) -> None:
            scripts[min(pod.attempt, len(scripts)) - 1](pod)

        self.kubelet.script = by_attempt

    def ranks_do(self, *scripts: Script) -> None:
        """Give pods their scripts by index."""

        def by_index(pod: Pod) -> None:
            scripts[pod.index](pod)

        self.kubelet.script = by_index

    def refuse_pods(self, why: str) -> None:
        """Refuse each new pod as an admission plugin does; a Job then only has events that say so. "" stops that."""
        self.api.refuse_pods = self.jobs.refuse_pods = self.operators.refuse_pods = why

    def forbid(self, verb: str, what: str) -> None:
        """Take a permission away: `forbid("create", "pods/exec")`."""
        self.api.forbidden.add((verb, what))

    def grant(self, role: Object) -> None:
        """Let the user do what a Role says, and nothing else."""
        self.api.rules = role["rules"]

    def admit(self) -> None:
        """Let Kueue admit every Job that it holds, and hold none any more."""
        self.api.queue_message = ""
        kueue.admit(self.store)

    def add_namespace(self, name: str) -> None:
        """Make a namespace."""
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}}
        self.store.create(NAMESPACES, "", made)

    def fail(self, verb: str, resource: str = "*", **what: Any) -> Fault:
        """Add a fault; keywords are its fields."""
        return self.faults.add(Fault(verb, resource, **what))

    def objects(self, namespace: str = NAMESPACE) -> list[str]:
        """Return `Kind/name` of everything in a namespace except its events."""
        kinds = {each.key: each.kind for each in RESOURCES}
        found = [(kinds[key[:2]], key[3]) for key, _ in self.store.everything() if key[2] == namespace]
        return sorted(f"{kind}/{name}" for kind, name in found if kind != "Event")

    def asked(self, verb: str, what: str = "*") -> list[Request]:
        """Return the requests of a verb so far."""
        return [each for each in list(self.requests) if each.verb == verb and what in ("*", each.what)]

    def pods(self, namespace: str = NAMESPACE) -> list[Object]:
        """Return all pods of a namespace."""
        return self.store.all(PODS, namespace)

    def _control(self) -> None:
        """Run the controllers, at each change and often enough for deadlines."""
        while self._running:
            seen = self.store.version
            try:
                for each in (self.operators.reconcile, self.jobs.reconcile, self.kubelet.reconcile):
                    each()
                collect_garbage(self.store)
            except Exception as failure:
                self.kubelet.failures.append(failure)
                return
            self.store.wait(seen, 0.1)


class _Http(ThreadingHTTPServer):
    """Keeps its connections, to be able to drop them."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], handler: type[Handler], cluster: FakeCluster) -> None:
        self.cluster = cluster
        self._open: set[Any] = set()
        super().__init__(address, handler)

    def get_request(self) -> tuple[Any, Any]:
        request, address = super().get_request()
        if self.cluster.tls:  # the first read shakes hands, in the connection's own thread
            request = server_context().wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        return request, address

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no error of the server."""

    def drop_all(self) -> None:
        """Drop every open connection."""
        for each in list(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _health(pod: Object, command: list[str]) -> Answer:
    """Answer the health text of a rendering; nothing else is installed in these containers."""
    if "trainlaunch health" in " ".join(command):
        return Answer(b"shm used=5242880 peak=6291456 size=1073741824 workers=2/2\n")
    return Answer(err=f"exec: {command[0]}: not found\n".encode(), code=127)


__all__ = ["Answer", "FakeCluster", "Fault", "Pod"]
