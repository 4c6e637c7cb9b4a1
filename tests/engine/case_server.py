"""Containers that serve many cases: starting one, or a Python with torch in it, costs more than most cases."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

IN_CONTAINER = Path(__file__).with_name("in_container")
STARTS_WITHIN = 600.0  # seconds, on a machine that does much else


class CaseServer:
    """A container whose program answers each line of JSON with one; it ends where its input does."""

    def __init__(self, label: str, *flags_image_command: str) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  as long as the container
        argv = ["docker", "run", "--rm", "--init", "--interactive", f"--label={label}", *flags_image_command]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said)
        self._pending = b""
        self._line(STARTS_WITHIN)

    def ask(self, request: object, seconds: float) -> dict[str, Any]:
        """Return the answer to a request; the container is ended where none comes in time."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._line(seconds))
        return answer

    @property
    def alive(self) -> bool:
        """Whether it can be asked once more."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the container and wait for its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()  # the container itself goes with its label
            self._process.wait()
        self._process.stdout.close()
        self._said.close()

    def _line(self, seconds: float) -> bytes:
        assert self._process.stdout is not None
        source, deadline = self._process.stdout.fileno(), time.monotonic() + seconds
        while b"\n" not in self._pending:
            if not select.select([source], (), (), max(0.0, deadline - time.monotonic()))[0]:
                self.close()
                raise TimeoutError(f"no answer after {seconds:g} s")
            chunk = os.read(source, 65536)
            if not chunk:
                self._said.seek(0)
                raise EOFError(self._said.read().decode(errors="replace"))
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line


class CaseServers:
    """One server per settings of a container, started where it is first asked; one that can't go on is replaced."""

    def __init__(self, start: Callable[..., CaseServer]) -> None:
        self._start = start
        self._running: dict[tuple[str, ...], CaseServer] = {}

    def ask(self, settings: tuple[str, ...], request: object, seconds: float) -> dict[str, Any]:
        """Return the answer of the server with these settings; `differs` in it ends the server."""
        server = self._running.get(settings)
        if server is None or not server.alive:
            server = self._running[settings] = self._start(*settings)
        answer = server.ask(request, seconds)
        if answer["differs"]:
            self._running.pop(settings).close()
        return answer

    def close(self) -> None:
        """End all of them."""
        while self._running:
            self._running.popitem()[1].close()
