"""The engine goes away for good while `up` follows: said, 125, and the job goes on. A lost connection is no more."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Runs
from tests.run.conftest import ROOT
from tests.run.test_up import Start, ended, read_until


class Proxy:
    """A socket that passes everything on to the engine's, until it is cut."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect("/var/run/docker.sock")
            self._open += [client, upstream]
            for source, sink in ((client, upstream), (upstream, client)):
                self._threads.append(threading.Thread(target=self._pass, args=(source, sink)))
                self._threads[-1].start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def hang_up(self) -> None:
        """Close every connection; new ones are taken."""
        open_now, self._open = self._open, []
        for each in open_now:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def cut(self) -> None:
        """Close the socket and every connection through it."""
        self.path.unlink(missing_ok=True)
        for each in [self._listener, *self._open]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(timeout=10)


@pytest.fixture
def proxy(tmp_path: Path, engine: str) -> Iterator[Proxy]:
    """Return a proxy to the engine."""
    proxy = Proxy(tmp_path / "engine.sock")
    yield proxy
    proxy.cut()


pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(
        not Path("/var/run/docker.sock").is_socket(), reason="the engine is not at /var/run/docker.sock"
    ),
]
SOON = (
    "import sys, launcher.run.reconnect as lasting; lasting.BACK_SECONDS = 2.0\n"
    "from launcher.cli.main import main; sys.exit(main())"
)


def test_a_lost_engine_is_125_and_the_job_goes_on(
    make_job: Callable[..., Path], proxy: Proxy, trainlaunch: Runs, job_name: str
) -> None:
    """After a while, here two seconds: no new attempt, the way to follow it again, and its code is still to be had."""
    script = "echo ready; sleep 8; exit 13"
    job = str(make_job(command=["/bin/sh", "-c", script], restart={"max_attempts": 3}))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DOCKER_HOST": f"unix://{proxy.path}"}
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", SOON, "up", job], env=environment, stdout=pipe, stderr=pipe)
    read_until(process, b"ready\n")
    proxy.cut()
    code, _, err = ended(process)
    assert code == 125
    assert "the engine went away; waiting up to 2s for it to come back" in err
    assert "the engine was lost while following" in err
    assert f"trainlaunch logs -f {job_name}" in err
    assert "attempt 2" not in err
    assert trainlaunch("wait", job).returncode == 13


def test_who_only_looks_outlives_an_engine_that_is_away(
    start: Start, make_job: Callable[..., Path], proxy: Proxy, trainlaunch: Runs, job_name: str
) -> None:
    """`wait`, `logs -f` of all and of a part, `attach`: said, no line lost or doubled, the job's own code."""
    script = "i=0; while [ $i -lt 150 ]; do i=$((i+1)); echo $i; sleep 0.1; done; exit 13"
    assert trainlaunch("up", "-d", str(make_job(command=["/bin/sh", "-c", script]))).returncode == 0
    host = f"unix://{proxy.path}"
    looking = {
        words: start(*words, job_name, DOCKER_HOST=host)
        for words in (("wait",), ("logs", "-f"), ("logs", "-f", "--tail", "2", "--timestamps"), ("attach",))
    }
    seen = {words: read_until(each, b"\n") for words, each in looking.items() if words != ("wait",)}
    read_until(looking["wait",], b" to end\n", stderr=True)  # by then it has reached the engine
    seen["wait",] = b""
    proxy.cut()
    time.sleep(1.5)
    again = Proxy(proxy.path)
    try:
        results = {words: ended(each) for words, each in looking.items()}
    finally:
        again.cut()
    numbers = [str(number) for number in range(1, 151)]
    for words, (code, rest, err) in results.items():
        assert code == 13, (words, err)
        assert err.count("the engine went away; waiting up to 60s for it to come back") == 1, (words, err)
        assert "the engine is back, and the job goes on" in err, (words, err)
        lines = [line.rpartition(" ")[2] for line in (seen[words].decode() + rest).splitlines()]
        assert lines == ([] if words == ("wait",) else numbers[150 - len(lines) :]), words
        assert len(lines) == 150 or words[-1] not in {"-f", "attach"}


def test_a_lost_connection_is_made_again(start: Start, make_job: Callable[..., Path], proxy: Proxy) -> None:
    """Every stream breaks while the engine is there: each line comes once, and the code is the job's."""
    script = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo $i; sleep 0.1; done; exit 13"
    process = start("up", str(make_job(command=["/bin/sh", "-c", script])), DOCKER_HOST=f"unix://{proxy.path}")
    seen = read_until(process, b"\n3\n").decode()
    proxy.hang_up()
    code, rest, err = ended(process)
    assert (code, seen + rest) == (13, "".join(f"{number}\n" for number in range(1, 41))), err
