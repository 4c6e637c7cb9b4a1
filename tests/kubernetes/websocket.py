"""The server's end of a WebSocket (RFC 6455), and exec over it: v4 and v5.channel.k8s.io."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import struct
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from tests.kubernetes.statuses import bad_request

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BINARY, CLOSE = 2, 8
_OUT, _ERR, _ERROR = 1, 2, 3


class Answer(NamedTuple):
    """What a command in a container printed, and its exit code."""

    out: bytes = b""
    err: bytes = b""
    code: int = 0


def accept(handler: BaseHTTPRequestHandler) -> str:
    """Switch protocols; return the subprotocol. Raises ApiError (400) where the client asks for something else."""
    asked = [each.strip() for each in handler.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    chosen = next((each for each in PROTOCOLS if each in asked), None)
    if handler.headers.get("Upgrade", "").lower() != "websocket" or chosen is None:
        raise bad_request("Upgrade request required")
    key = handler.headers["Sec-WebSocket-Key"]
    digest = hashlib.sha1((key + _GUID).encode(), usedforsecurity=False).digest()
    handler.send_response(101, "Switching Protocols")
    handler.send_header("Upgrade", "websocket")
    handler.send_header("Connection", "Upgrade")
    handler.send_header("Sec-WebSocket-Accept", base64.b64encode(digest).decode())
    handler.send_header("Sec-WebSocket-Protocol", chosen)
    handler.end_headers()
    return chosen


def answer_exec(handler: BaseHTTPRequestHandler, answer: Answer) -> None:
    """Send a command's output and its end over an accepted connection, then close it."""
    for channel, data in ((_OUT, answer.out), (_ERR, answer.err), (_ERROR, json.dumps(status(answer.code)).encode())):
        if data:
            handler.wfile.write(frame(bytes([channel]) + data))
    handler.wfile.write(closing())
    handler.connection.settimeout(2)
    with contextlib.suppress(OSError):
        handler.rfile.read(2)  # the client's own close
    handler.close_connection = True


def closing() -> bytes:
    """Return the frame that ends a connection."""
    return frame(struct.pack(">H", 1000), CLOSE)


def frame(payload: bytes, opcode: int = _BINARY) -> bytes:
    """Return a frame of the server's."""
    head = bytes([0x80 | opcode])
    if len(payload) < 126:
        return head + bytes([len(payload)]) + payload
    if len(payload) < 1 << 16:
        return head + bytes([126]) + struct.pack(">H", len(payload)) + payload
    return head + bytes([127]) + struct.pack(">Q", len(payload)) + payload


def status(code: int) -> dict[str, Any]:
    """Return the Status that an ended command has."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    causes = [{"reason": "ExitCode", "message": str(code)}]
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": causes},
    }
