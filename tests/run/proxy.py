"""A socket in front of the engine's: it counts what it is asked, and can be slow, fall silent or be cut."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from pathlib import Path

ENGINE = Path("/var/run/docker.sock")
_REQUEST = re.compile(rb"^(GET|POST|DELETE|HEAD) (/\S*) HTTP/1\.1\r\n", re.MULTILINE)


class Proxy:
    """A socket that passes everything on to the engine's, until it is cut; `asked` are the requests, in order.

    `seconds` are what each piece takes, as through a tunnel to an engine far away.
    """

    def __init__(self, path: Path, engine: Path = ENGINE) -> None:
        self.path = path
        self.asked: list[str] = []
        self.seconds = 0.0
        self._engine = engine
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._open: list[socket.socket] = []
        self._silent: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(str(self._engine))
            self._open += [client, upstream]
            for source, sink in ((client, upstream), (upstream, client)):
                self._threads.append(threading.Thread(target=self._pass, args=(source, sink, source is client)))
                self._threads[-1].start()

    def _pass(self, source: socket.socket, sink: socket.socket, asks: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if asks:
                    self.asked += [f"{verb.decode()} {path.decode()}" for verb, path in _REQUEST.findall(data)]
                time.sleep(self.seconds)
                if source not in self._silent:
                    sink.sendall(data)
            if source not in self._silent:
                sink.shutdown(socket.SHUT_WR)

    def fall_silent(self) -> None:
        """Pass nothing on of the connections that there are, which stay open; new ones are as before."""
        self._silent |= set(self._open)

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
