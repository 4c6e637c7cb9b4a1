"""A command in a container over a WebSocket, and why one is refused: the only place that imports websocket-client."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from trainlaunch.run.kubernetes.api_errors import HTTP_FORBIDDEN


class ExecRefused(Exception):
    """A command could not be run in a pod: why, as a clause; `forbidden` says that it never can be."""

    def __init__(self, words: str, *, forbidden: bool = False) -> None:
        self.forbidden = forbidden
        super().__init__(words)


def exec_refused(reason: str) -> ExecRefused:
    """Return the error for what the WebSocket library says: `Handshake status 500 … -+-+- headers -+-+- body`."""
    status, _, rest = " ".join(reason.split()).partition(" -+-+- ")
    if f"status {HTTP_FORBIDDEN}" in status:
        return ExecRefused("you may not run commands in pods (pods/exec is forbidden)", forbidden=True)
    said = re.search(r'"message": ?"((?:[^"\\]|\\.)*)"', rest)
    words = re.sub(r"\\+(.)", r"\1", said[1]) if said else status
    return ExecRefused(words.strip()[:160] or "the connection broke")


class Execution:
    """A command in a container over its WebSocket: frames of a channel's number and bytes, both ways."""

    def __init__(self, client: Any) -> None:
        self._socket = client.sock
        self.can_close_input = client.subprotocol == "v5.channel.k8s.io"

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Yield what comes, until the other side closes, or the connection breaks."""
        from websocket import ABNF, WebSocketException

        with contextlib.suppress(OSError, WebSocketException):
            while True:
                kind, frame = self._socket.recv_data_frame(True)
                if kind == ABNF.OPCODE_CLOSE:
                    return
                if kind in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) and frame.data:
                    yield frame.data[0], frame.data[1:]

    def send(self, data: bytes) -> None:
        """Send a frame. Raises OSError where the connection is gone."""
        from websocket import ABNF, WebSocketException

        try:
            self._socket.send(data, opcode=ABNF.OPCODE_BINARY)
        except WebSocketException as cause:
            raise OSError(str(cause)) from cause

    def close(self) -> None:
        """Close the connection without waiting for the other side."""
        with contextlib.suppress(OSError):
            self._socket.shutdown()
