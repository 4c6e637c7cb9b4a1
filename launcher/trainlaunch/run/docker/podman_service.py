"""Finds Podman on a host without a Docker engine: the socket of its service, else one for the time of one command.

Podman's containers belong to a process of their own each (conmon), so they outlive any service; one that nobody talks
to ends by itself, should its starter be killed.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

IDLE_SECONDS = 30
START_SECONDS = 20.0
CONNECT_SECONDS = 10.0
ROOTFUL = Path("/run/podman/podman.sock")


class Service(NamedTuple):
    """Where a Podman service listens; `process` is the one that was started for it, `folder` its socket's."""

    socket: Path
    process: subprocess.Popen[bytes] | None = None
    folder: Path | None = None

    def named(self) -> str:
        """Return what it is, as a sentence names it."""
        return f"Podman at {self.socket}" if self.process is None else "Podman, by a service for this command alone"

    def end(self) -> None:
        """End a service that was started here; containers go on."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def find_service() -> Service | None:
    """Return this user's Podman: a socket that answers, else a service that is started now; None without Podman."""
    for each in _known_sockets():
        if _answers(each):
            return Service(each)
    podman = shutil.which("podman")
    return None if podman is None else _start(podman)


def _known_sockets() -> tuple[Path, ...]:
    """Return where `podman.socket` of systemd listens: this user's own first; root's is the system's."""
    own = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "podman/podman.sock"
    return (ROOTFUL, own) if os.getuid() == 0 else (own, ROOTFUL)


def _start(podman: str) -> Service | None:
    """Start a service on a socket that only this user can open; None where it doesn't come up."""
    folder = Path(tempfile.mkdtemp(prefix="trainlaunch-podman-", dir=os.environ.get("XDG_RUNTIME_DIR") or None))
    path = folder / "podman.sock"
    process = subprocess.Popen(
        [podman, "system", "service", f"--time={IDLE_SECONDS}", f"unix://{path}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,  # on cgroup v1 a container's supervisor leaves a file `oom` where its service was started
        start_new_session=True,  # Ctrl-C is for the job
    )
    service = Service(path, process, folder)
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if _answers(path):
            return service
        time.sleep(0.02)
    service.end()
    return None


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(CONNECT_SECONDS)
        try:
            sock.connect(str(path))
        except OSError:
            return False
    return True
