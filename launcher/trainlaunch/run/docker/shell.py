"""A shell on an engine: in a container of its own like the job's, or in one that runs."""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trainlaunch.exit_codes import EXIT_BEFORE_START
from trainlaunch.job.reserved import LABEL_PREFIX
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.target_names import shortened
from trainlaunch.run.base.backend import Say
from trainlaunch.run.base.container_shell import (
    MARK,
    TerminalSize,
    hold_argv,
    planned_argv,
    run_inside,
)
from trainlaunch.run.base.run_query import OWNER_KEY, own_name
from trainlaunch.run.base.sessions import frames
from trainlaunch.run.docker.backend import DockerBackend
from trainlaunch.run.docker.checks import start_refused
from trainlaunch.run.docker.client import Engine, EngineRefused
from trainlaunch.run.docker.containers import plain_body
from trainlaunch.targets import DOCKER

SHELL_LABEL = LABEL_PREFIX + "shell"
SIGNALS_LEFT = "ctrl-^,ctrl-^,ctrl-^"  # the keys that leave a command alone; Docker's own, Ctrl-P, are the shell's


class EngineCommand:
    """A command in a container of an engine, attached."""

    def __init__(self, engine: Engine, container: str, argv: Sequence[str], terminal: bool) -> None:
        self._engine = engine
        self._terminal = terminal
        self._lock = threading.Lock()
        with engine.attempting(f"run a command in container {container[:12]}") as client:
            made = client.exec_create(
                container, list(argv), stdin=True, tty=terminal, detach_keys=SIGNALS_LEFT if terminal else None
            )
            self._id: str = made["Id"]
            response = client._post_json(
                client._url("/exec/{0}/start", self._id),
                headers={"Connection": "Upgrade", "Upgrade": "tcp"},
                data={"Tty": terminal, "Detach": False},
                stream=True,
                timeout=None,  # it may say nothing for hours
            )
            self._socket: Any = client._get_raw_response_socket(response)
        self._response = response  # what it has read ahead is the first output
        self._reader = response.raw._fp.fp

    def output(self) -> Iterator[tuple[bool, bytes]]:
        """Yield what it writes; a terminal has one stream."""
        with contextlib.suppress(OSError, ValueError):
            while self._terminal and (data := self._reader.read1(1 << 16)):
                yield False, data
            if not self._terminal:
                yield from ((each.stderr, each.data) for each in frames(self._reader.read))

    def send(self, data: bytes) -> None:
        """Write to its stdin."""
        self._plain.sendall(data)

    def end_input(self) -> None:
        """Close our half of the connection; a terminal has no such end, the user types Ctrl-D."""
        if not self._terminal:
            self._plain.shutdown(socket.SHUT_WR)

    @property
    def _plain(self) -> socket.socket:
        found: socket.socket = getattr(self._socket, "_sock", self._socket)
        return found

    def resize(self, size: TerminalSize) -> None:
        """Tell its terminal a size; it may not have one yet, or no more."""
        with contextlib.suppress(EngineRefused), self._engine.attempting("resize a terminal") as client:
            client.exec_resize(self._id, height=size.rows, width=size.columns)

    def exit_code(self) -> int | None:
        """Return its exit code; None while it runs on without us."""
        with self._engine.attempting("read a command's exit code") as client:
            code: int | None = client.exec_inspect(self._id).get("ExitCode")
        return code

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self._plain.shutdown(socket.SHUT_RDWR)
        self._response.close()


def run_in_container(engine: Engine, container: str, argv: Sequence[str], token: str, *, term: str | None) -> int:
    """Run a command in a container; `term` is the kind of its terminal, None for none."""
    code = run_inside(functools.partial(EngineCommand, engine, container), argv, token, term=term)
    return EXIT_BEFORE_START if code is None else code


@contextlib.contextmanager
def own_container(backend: DockerBackend, plan: LaunchPlan, token: str, say: Say) -> Iterator[str]:
    """Give a started container like the job's that only holds a shell; nothing of it is left afterwards.

    It has none of our labels by which a run is found. Raises TargetUnavailable.
    """
    backend.check(plan, say)
    body = plain_body(plan)
    labels = {key: value for key, value in body["Labels"].items() if not key.startswith(LABEL_PREFIX)}
    body["Labels"] = {**labels, SHELL_LABEL: token, f"{LABEL_PREFIX}shell-{OWNER_KEY}": own_name()}
    entrypoint, *rest = hold_argv()
    body |= {"Entrypoint": [entrypoint], "Cmd": rest, "Healthcheck": {"Test": ["NONE"]}}
    body["Env"] = [*(body.get("Env") or ()), f"{MARK}={token}"]
    body["HostConfig"]["AutoRemove"] = True
    name = f"{shortened(plan.name, 40)}-shell-{token[:8]}"
    with backend.engine.attempting(f"create container {name}") as client:
        container: str = client.create_container_from_config(body, name)["Id"]
    try:
        try:
            with backend.engine.attempting(f"start container {name}") as client:
                client.start(container)
        except EngineRefused as refused:
            raise start_refused(refused) from refused
        yield container
    finally:
        _remove(backend.engine, container)


def _remove(engine: Engine, container: str) -> None:
    """Remove a container with its volumes, whatever it does; the engine may be at it already."""
    gone: Callable[[EngineRefused], bool] = lambda refused: refused.status in {404, 409}  # noqa: E731
    try:
        with engine.attempting(f"remove container {container[:12]}") as client:
            client.remove_container(container, v=True, force=True)
    except EngineRefused as refused:
        if not gone(refused):
            raise


def run_own(
    open_backend: Callable[[Say], DockerBackend], plan: LaunchPlan, token: str, term: str | None, say: Say
) -> int:
    """Run a shell plan in a container of its own, of target compose too: there without what is of Compose alone."""
    if plan.target != DOCKER.name:
        patch = "" if plan.job.patch is None else f" and patches.{plan.target}"
        say(f"a shell's container is made without the job's network{patch}")
        plan = plan._replace(target=DOCKER.name, job=plan.job._replace(target=DOCKER.name, patch=None))
    with (
        contextlib.closing(open_backend(say)) as backend,
        own_container(backend, plan, token, say) as container,
    ):
        return run_in_container(backend.engine, container, planned_argv(plan), token, term=term)
