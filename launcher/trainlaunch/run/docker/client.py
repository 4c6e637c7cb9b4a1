"""The only place that imports the Docker SDK: finds the engine that the `docker` command would use, maps its errors.

Environment: DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH, DOCKER_CONTEXT and the current context of the docker
CLI; TRAINLAUNCH_ENGINE=podman.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import shlex
import shutil
import socket
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.docker.podman_service import Service, find_service

if TYPE_CHECKING:
    from docker import APIClient

NO_PERMISSION = "TL502"
REFUSED = "TL508"
DEFAULT_HOST = "unix:///var/run/docker.sock"
PROBE_SECONDS = 10
GONE, CONFLICT = 404, 409
ENGINE = "TRAINLAUNCH_ENGINE"  # podman: its service is used beside a Docker engine too
ANY_VERSION = "1.41"  # a ping has none; without one the SDK would ask
PODMAN = "Libpod-Api-Version"  # a header that only Podman sends
# Podman answers 500 where Docker answers 409.
_PODMAN_CONFLICTS = ("that name is already in use", "can only kill running containers")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the engine listens; `named_by` is `DOCKER_HOST`, `docker context NAME`, or empty for the default.

    `podman` is the service that stands in for a Docker engine that isn't there.
    """

    host: str
    named_by: str
    tls: Any = None
    podman: Service | None = None

    @property
    def socket_path(self) -> str | None:
        """The path of a Unix socket, None for tcp and ssh."""
        return self.host.removeprefix("unix://") if self.host.startswith("unix://") else None

    @property
    def variables(self) -> dict[str, str]:
        """What the docker command's kin must have in its environment to reach this engine too."""
        return {} if self.podman is None else {"DOCKER_HOST": self.host}


class Engine:
    """A Docker engine; each thread gets its own connection, since `up` follows, waits and samples at once."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._local = threading.local()
        self._version: str | None = None  # of the API; unknown until the first connection
        self._podman = False
        self._opened: weakref.WeakSet[APIClient] = weakref.WeakSet()  # a thread's connection ends with the thread

    @property
    def is_podman(self) -> bool:
        """Whether Podman answers here; raises TargetUnavailable where nothing does."""
        if self._version is None:
            self.client  # noqa: B018 - connecting asks
        return self._podman

    @property
    def client(self) -> APIClient:
        """The calling thread's connection; raises TargetUnavailable (TL501, TL502) where no engine answers."""
        client: APIClient | None = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = self._connect()
            self._opened.add(client)
        return client

    @functools.cached_property
    def info(self) -> Mapping[str, Any]:
        """What the engine says of itself and its host, asked once. Raises TargetUnavailable."""
        with self.attempting("read the engine's info") as client:
            found: Mapping[str, Any] = client.info()
        return found

    def close(self) -> None:
        """Close the connections of all threads, and end a Podman service that was started for them."""
        with contextlib.suppress(KeyError):  # none is left; to ask before is no use, since threads end meanwhile
            while True:
                self._opened.pop().close()
        self._local = threading.local()
        if self.endpoint.podman is not None:
            self.endpoint.podman.end()

    def _connect(self) -> APIClient:
        probe(self.endpoint)
        import docker
        import requests

        try:
            if self._version is None:
                with contextlib.closing(self._connection(ANY_VERSION)) as first:
                    self._ask(first)
            return self._connection(self._version)
        except (docker.errors.DockerException, requests.RequestException, OSError) as cause:
            raise unreachable(self.endpoint, str(cause)) from cause

    def _connection(self, version: str | None) -> APIClient:
        import docker

        ssh = self.endpoint.host.startswith("ssh://")
        tls = self.endpoint.tls or False
        client = docker.APIClient(base_url=self.endpoint.host, version=version, tls=tls, use_ssh_client=ssh)
        if not ssh:  # each of its connections is a process
            client.headers["Connection"] = "close"  # one that is kept may have died in silence, as in a tunnel
        return client

    def _ask(self, client: APIClient) -> None:
        """Learn the engine's version and kind from a ping: Podman takes two seconds to answer `/version`."""
        headers = client.get(f"{client.base_url}/_ping", timeout=PROBE_SECONDS).headers
        self._podman = PODMAN in headers
        self._version = headers.get("Api-Version") or "auto"

    @contextlib.contextmanager
    def attempting(self, what: str) -> Iterator[Any]:
        """Give the APIClient and turn the vendor's errors into TargetUnavailable; `what` names what was attempted.

        It is Any because the SDK's stubs know half of it.
        """
        import docker
        import requests
        import urllib3

        client = self.client
        try:
            yield client
        except docker.errors.APIError as cause:
            words = str(cause.explanation or cause)
            conflicts = any(each in words for each in _PODMAN_CONFLICTS)
            raise EngineRefused(what, words, CONFLICT if conflicts else cause.status_code) from cause
        except (
            docker.errors.DockerException,
            requests.RequestException,
            urllib3.exceptions.HTTPError,
            OSError,
        ) as cause:
            raise unreachable(self.endpoint, f"{what}: {cause}") from cause


class EngineRefused(TargetUnavailable):
    """The engine answered and said no: its words and its HTTP status (404 no such thing, 409 the name is taken)."""

    def __init__(self, what: str, explanation: str, status: int | None) -> None:
        self.explanation = explanation
        self.status = status
        super().__init__(
            [
                Diagnostic(
                    code=REFUSED,
                    message=f"docker: {what}: the engine refuses",
                    why=f"the engine says: {explanation.strip()}",
                    fix="change what the engine names; the same call gives the same answer until then",
                )
            ]
        )


def find_endpoint() -> Endpoint:
    """Return the engine that the docker CLI would talk to from here."""
    import docker
    from docker.context import ContextAPI
    from docker.utils import kwargs_from_env

    host = os.environ.get("DOCKER_HOST")
    if os.environ.get(ENGINE) == "podman" and not host:
        return _podman_endpoint()
    if host:
        tls = kwargs_from_env().get("tls")
        return Endpoint(host, "DOCKER_HOST", tls)
    name = os.environ.get("DOCKER_CONTEXT") or None
    try:
        context = ContextAPI.get_context(name)
    except (docker.errors.DockerException, OSError, ValueError):
        context = None
    if context is None and name not in {None, "default"}:
        raise unreachable(Endpoint(str(name), "DOCKER_CONTEXT"), "`docker context ls` has no context of that name")
    if context is None or not context.Host or context.Name == "default":
        return _default_endpoint()
    return Endpoint(str(context.Host), f"docker context {context.Name}", context.TLSConfig)


def _podman_endpoint() -> Endpoint:
    podman = find_service()
    if podman is None:
        raise no_podman("no `podman` on PATH starts a service", "install podman, or use `--target docker`")
    return Endpoint(f"unix://{podman.socket}", "", podman=podman)


def no_podman(why: str, fix: str) -> TargetUnavailable:
    """Return the error for a Podman that was asked for by name and isn't what answers (TL501)."""
    return TargetUnavailable([Diagnostic("TL501", "no Podman answers, and the target is podman", fix, why=why)])


def _default_endpoint() -> Endpoint:
    """Return the default socket, or Podman's where no Docker engine listens there."""
    docker = Endpoint(DEFAULT_HOST, "")
    try:
        probe(docker)
    except TargetUnavailable as missing:
        podman = find_service() if missing.diagnostics[0].code == "TL501" else None
        if podman is not None:
            return Endpoint(f"unix://{podman.socket}", "", podman=podman)
    return docker


def probe(endpoint: Endpoint) -> None:
    """Raise TargetUnavailable with the exact reason when a Unix socket can't be opened, or ssh:// can't be spoken."""
    path = endpoint.socket_path
    if path is None:
        _probe_ssh(endpoint)
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(PROBE_SECONDS)
            sock.connect(path)
    except PermissionError as cause:
        raise TargetUnavailable([_no_permission(path)]) from cause
    except FileNotFoundError as cause:
        raise unreachable(endpoint, f"the socket {path} does not exist") from cause
    except ConnectionRefusedError as cause:
        raise unreachable(endpoint, f"the socket {path} is there, and no engine listens on it") from cause
    except OSError as cause:
        raise unreachable(endpoint, f"the socket {path}: {cause.strerror or cause}") from cause


def _probe_ssh(endpoint: Endpoint) -> None:
    """Raise TargetUnavailable where what the SDK needs for ssh:// is not here: a package, and the program itself."""
    if not endpoint.host.startswith("ssh://"):
        return

    forward = f"ssh -nNTL /tmp/docker.sock:/var/run/docker.sock {shlex.quote(endpoint.host)}"
    besides = f"or run `{forward}` and set DOCKER_HOST to unix:///tmp/docker.sock"
    if not _is_installed("paramiko"):
        fix = f"run `{sys.executable} -m pip install 'docker[ssh]'`, {besides}"
        raise unreachable(endpoint, "ssh:// needs the Python package paramiko, which is not installed", fix)
    if shutil.which("ssh") is None:
        fix = "install an SSH client, like openssh-client, or set DOCKER_HOST to where an engine listens"
        raise unreachable(endpoint, "ssh:// needs the program ssh, which is not on PATH", fix)


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # somebody has put it out of the way
        return False


def unreachable(endpoint: Endpoint, why: str, fix: str = "") -> TargetUnavailable:
    """Return the error for an engine that doesn't answer (TL501); `fix` where the caller knows a better one."""
    place = f"{endpoint.host} ({endpoint.named_by})" if endpoint.named_by else endpoint.host
    message = f"no Docker engine answers at {place}"
    return TargetUnavailable([Diagnostic("TL501", message, fix or _way_out(endpoint), why=why)])


def _way_out(endpoint: Endpoint) -> str:
    if endpoint.host.startswith("ssh://"):  # what ssh itself says stands above
        return f"make `ssh {shlex.quote(endpoint.host)} docker version` work, without a question for a password"
    if endpoint.named_by in {"DOCKER_HOST", "DOCKER_CONTEXT"}:
        return f"unset {endpoint.named_by} to use {DEFAULT_HOST}, or start the engine that it names"
    if endpoint.named_by:
        return f"run `docker context use default`, or start the engine of {endpoint.named_by}"
    return "run `sudo systemctl start docker` (or start Docker Desktop), or set DOCKER_HOST to where one listens"


def _no_permission(path: str) -> Diagnostic:
    return Diagnostic(
        code=NO_PERMISSION,
        message=f"this user may not open the engine's socket {path}",
        why=f"uid {os.getuid()} is neither its owner nor in its group",
        fix="use `--target podman`, which needs no group, or " * (shutil.which("podman") is not None)
        + 'run `sudo usermod -aG docker "$USER"`, then log in again (members of that group are root on this host)',
    )
