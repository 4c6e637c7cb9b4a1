"""Exec with stdin: the command as a process of this host, on a terminal or pipes, until it or the connection ends.

When the client goes, its stdin ends and nothing else: the process goes on, as under a container runtime.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from typing import IO

from tests.kubernetes import websocket

STDIN, RESIZE, CLOSE = 0, 4, 255


def serve(
    handler: BaseHTTPRequestHandler, command: Sequence[str], env: Mapping[str, str], *, terminal: bool, closes: bool
) -> None:
    """Run a command over an accepted connection; `closes`: its protocol can end stdin alone."""
    session = _Session(handler, command, {**os.environ, **env}, terminal=terminal)
    threading.Thread(target=session.take, args=(closes,), daemon=True).start()
    session.give()
    handler.close_connection = True


class _Session:
    def __init__(
        self, handler: BaseHTTPRequestHandler, command: Sequence[str], env: Mapping[str, str], *, terminal: bool
    ) -> None:
        self._handler = handler
        self._lock = threading.Lock()
        self._terminal = terminal
        self._master = -1
        if terminal:
            self._master, slave = pty.openpty()
            self._process = subprocess.Popen(
                ["setsid", "--ctty", *command], env=env, stdin=slave, stdout=slave, stderr=slave
            )
            os.close(slave)
        else:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )

    def give(self) -> None:
        """Send what it writes, then its end."""
        if self._terminal:
            self._copy(self._master, 1)
        else:
            streams = ((self._process.stdout, 1), (self._process.stderr, 2))
            threads = [threading.Thread(target=self._copy, args=(_number(each), to)) for each, to in streams]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
        code = self._process.wait()
        with contextlib.suppress(OSError):
            self._send(3, json.dumps(websocket.status(128 - code if code < 0 else code)).encode())
            self._handler.wfile.write(websocket.closing())
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        if self._terminal:
            os.close(self._master)
        self._end_input()

    def take(self, closes: bool) -> None:
        """Take what the client sends until it goes."""
        for channel, data in _frames(self._handler):
            if channel == RESIZE:
                size = json.loads(data)
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", size["Height"], size["Width"], 0, 0))
            elif channel == STDIN:
                self._feed(data)
            elif channel == CLOSE and closes and data == bytes([STDIN]):
                self._end_input()
        self._end_input()

    def _feed(self, data: bytes) -> None:
        with contextlib.suppress(OSError, ValueError, AssertionError):
            os.write(self._master if self._terminal else _number(self._process.stdin), data)

    def _end_input(self) -> None:
        with contextlib.suppress(OSError):
            if not self._terminal and self._process.stdin is not None:
                self._process.stdin.close()

    def _copy(self, descriptor: int, channel: int) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(descriptor, 1 << 16):
                self._send(channel, data)

    def _send(self, channel: int, data: bytes) -> None:
        with self._lock:
            self._handler.wfile.write(websocket.frame(bytes([channel]) + data))


def _number(stream: IO[bytes] | None) -> int:
    assert stream is not None
    return stream.fileno()


def _frames(handler: BaseHTTPRequestHandler) -> Iterator[tuple[int, bytes]]:
    """Yield the client's frames as channel and bytes, until it closes."""
    with contextlib.suppress(OSError, ValueError):
        while len(head := handler.rfile.read(2)) == 2:
            size = head[1] & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", handler.rfile.read(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", handler.rfile.read(8))
            mask, masked = handler.rfile.read(4), handler.rfile.read(size)
            data = bytes(each ^ mask[at % 4] for at, each in enumerate(masked))
            if head[0] & 0x0F == websocket.CLOSE:
                return
            if data:
                yield data[0], data[1:]
