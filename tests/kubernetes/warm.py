"""The command line as a process that has begun already: its imports and the official client take a second of CPU.

One server for each test process imports everything and renders a job once, and forks a child for each command, which
then is a process like any other: its own signals, streams, folder, variables and exit code. While it waits for a
cluster a child's clock runs faster than the world's.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from trainlaunch.run.base.clock import Clock
from trainlaunch.run.kubernetes.client import Cluster

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ("kubernetes.client", "kubernetes.config", "kubernetes.stream", "websocket", "yaml")
ELSEWHERE = ("trainlaunch.inside", "trainlaunch.__main__")  # runs in the job's container; runs at its import
REHEARSED = "examples/resume/job.yaml"
MOST = 1 << 20  # bytes of one request


class WarmProcess:
    """A started command; as much of subprocess.Popen[bytes] as tests of a cluster use."""

    def __init__(
        self, server: socket.socket, argv: Sequence[str], *, cwd: Path, env: dict[str, str], speed: float
    ) -> None:
        self._status, status = os.pipe()
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        self.stdout: BinaryIO = os.fdopen(out, "rb")
        self.stderr: BinaryIO = os.fdopen(err, "rb")
        self.returncode: int | None = None
        request = json.dumps({"argv": argv, "cwd": str(cwd), "env": env, "speed": speed}).encode()
        socket.send_fds(server, [request], [out_end, err_end, status])
        for each in (out_end, err_end, status):
            os.close(each)
        self.pid = int(server.recv(64))

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return the exit code, negative for a signal."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0)
            self.returncode = int(os.read(self._status, 64) or b"-9")
            os.close(self._status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


@functools.cache
def server() -> socket.socket:
    """Return the connection to this test process's server, started at the first call; it ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kubernetes.warm", str(theirs.fileno())],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "launcher")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
    )
    theirs.close()

    @atexit.register
    def end() -> None:
        ours.close()
        process.wait(timeout=60)

    return ours


def start(argv: Sequence[str], *, cwd: Path, env: dict[str, str], speed: float) -> WarmProcess:
    """Start `trainlaunch ARGV`, with exactly these variables and a clock of that speed."""
    return WarmProcess(server(), argv, cwd=cwd, env=env, speed=speed)


def serve(connection: socket.socket) -> list[str]:
    """Fork a child for each request and tell its exit code; returns in the child, with its command line."""
    waking, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    running: dict[int, int] = {}
    while True:
        ready = select.select([connection, waking], [], [])[0]
        if waking in ready:
            os.read(waking, 4096)
            _tell_ends(running)
        if connection in ready:
            request, descriptors, _, _ = socket.recv_fds(connection, MOST, 3)
            if not request:
                raise SystemExit(0)  # the tests have ended
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for each in (*running.values(), waking, woken, connection.fileno(), descriptors[2]):
                    os.close(each)
                return _become(json.loads(request), descriptors)
            for each in descriptors[:2]:
                os.close(each)
            running[pid] = descriptors[2]
            connection.send(b"%d" % pid)


def _tell_ends(running: dict[int, int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with contextlib.suppress(BrokenPipeError):
            os.write(running[pid], b"%d" % os.waitstatus_to_exitcode(status))
        os.close(running.pop(pid))


def _become(request: dict[str, Any], descriptors: Sequence[int]) -> list[str]:
    """Make this forked child the process that was asked for."""
    for each, place in zip(descriptors, (1, 2), strict=False):
        os.dup2(each, place)
        os.close(each)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    Cluster.__init__.__defaults__ = (Clock(request["speed"]),)
    argv: list[str] = request["argv"]
    return argv


def _warm_up() -> None:
    """Do once what each command would do again: import, and compile the templates of a rendering."""
    import trainlaunch
    from trainlaunch.cli.main import main

    ours = (each.name for each in pkgutil.walk_packages(trainlaunch.__path__, "trainlaunch."))
    for name in (*LIBRARIES, *(each for each in ours if not each.startswith(ELSEWHERE))):
        importlib.import_module(name)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(["render", "--target", "kubernetes", str(ROOT / REHEARSED)])
    gc.freeze()  # a collection in a child would copy every page


if __name__ == "__main__":
    from trainlaunch.cli.main import main

    _warm_up()
    raise SystemExit(main(serve(socket.socket(fileno=int(sys.argv[1])))))
