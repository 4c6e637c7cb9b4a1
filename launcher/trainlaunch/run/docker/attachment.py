"""What of a container joins its caller: its streams with its stdin, and the fields of its creation that make it so."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.backend import Chunk
from trainlaunch.run.base.engine_terminal import EngineTerminal
from trainlaunch.run.base.sessions import frames
from trainlaunch.run.docker.client import Engine
from trainlaunch.run.docker.exec_command import execute

PIECE = 1 << 16
_TERMINAL = "/dev/console"  # what an engine mounts a container's own terminal to


class ContainerAttachment:
    """The streams of a container, opened before its start, whose stdin is ours."""

    def __init__(self, engine: Engine, container: str, *, terminal: bool) -> None:
        self._engine = engine
        self._container = container
        self._terminal = terminal
        with engine.attempting(f"attach to container {container[:12]}") as client:
            response = client._post(
                client._url("/containers/{0}/attach", container),
                headers={"Connection": "Upgrade", "Upgrade": "tcp"},
                params={"stream": 1, "stdin": 1, "stdout": 1, "stderr": 1},
                stream=True,
                timeout=None,
            )
            held: Any = client._get_raw_response_socket(response)
        self._response = response  # what it has read ahead is the first output
        self._reader = response.raw._fp.fp
        self._socket: socket.socket = getattr(held, "_sock", held)
        self._socket.settimeout(None)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the output; a terminal has one stream. A lost engine ends it as the job's end does."""
        with contextlib.suppress(OSError, ValueError):
            while self._terminal and (data := self._reader.read1(PIECE)):
                yield Chunk(stderr=False, data=data)
            if not self._terminal:
                yield from frames(self._reader.read)

    def send(self, data: bytes) -> None:
        """Write to its stdin."""
        self._socket.sendall(data)

    def end_input(self) -> None:
        """Close our half of the connection; a terminal has no such end, the user types Ctrl-D."""
        if not self._terminal:
            self._socket.shutdown(socket.SHUT_WR)

    def resize(self, rows: int, columns: int) -> None:
        """Tell the engine; the container may have ended."""
        with contextlib.suppress(TargetUnavailable), self._engine.attempting("resize a terminal") as client:
            client.resize(self._container, height=rows, width=columns)

    def signal(self, number: int) -> None:
        """Send it through the engine; the container may have ended."""
        with contextlib.suppress(TargetUnavailable), self._engine.attempting("send a signal") as client:
            client.kill(self._container, signal.Signals(number).name)

    def makes_signals(self) -> bool:
        """Ask stty inside; an image without it counts as one whose programs leave the terminal as it is."""
        with contextlib.suppress(TargetUnavailable):
            return "-isig" not in execute(self._engine, self._container, ["stty", "-a", "-F", _TERMINAL]).split()
        return True

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._response.close()


def join_caller(body: dict[str, Any], terminal: EngineTerminal | None) -> None:
    """Let a container that is to be made have what its caller has; None: nothing, as a detached one."""
    if terminal is None:
        return
    body |= {"Tty": terminal.has_terminal, "OpenStdin": terminal.has_stdin, "StdinOnce": terminal.has_stdin}
    body["AttachStdin"] = terminal.has_stdin
    names = {each.partition("=")[0] for each in body.get("Env") or ()}
    if terminal.has_terminal and "TERM" not in names and (kind := os.environ.get("TERM")):
        body["Env"] = [*(body.get("Env") or ()), f"TERM={kind}"]


def keep_caller(body: dict[str, Any], info: Mapping[str, Any], groups: Sequence[int], *, podman: bool) -> None:
    """Let a container read and write the caller's files as the caller, of these `groups` too, on an engine with this
    `GET /info`, which may map users to others, or keep containers from what has no label of theirs.
    """
    options, host = " ".join(info.get("SecurityOptions") or ()), body["HostConfig"]
    rootless = info.get("Rootless") is True or "name=rootless" in options
    if podman and rootless:
        host["UsernsMode"] = "keep-id"
    elif rootless:  # root inside is who runs the engine
        body["User"] = "0:0"
    elif "name=userns" in options:
        host["UsernsMode"] = "host"
    if groups and not rootless:
        host["GroupAdd"] = [*(host.get("GroupAdd") or ()), *map(str, groups)]
    if "name=selinux" in options:  # a label on the caller's folder itself would stay there
        host["SecurityOpt"] = [*(host.get("SecurityOpt") or ()), "label=disable"]
