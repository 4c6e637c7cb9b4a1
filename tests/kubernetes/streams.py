"""Answers that don't end by themselves: watches and logs, with the faults that a network and a server can have."""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.kubernetes import selectors
from tests.kubernetes.api import Request
from tests.kubernetes.faults import Fault
from tests.kubernetes.statuses import ApiError, expired
from tests.kubernetes.store import SPEED, Change, Object, Store

BOOKMARK_EVERY = 1.0  # the real server sends one about each minute


class Cut(Exception):
    """The connection is over."""


class Stream:
    """A chunked body; each piece is sent at once."""

    def __init__(self, handler: BaseHTTPRequestHandler, kind: str) -> None:
        self._handler = handler
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()

    def send(self, data: bytes, slow: float = 0.0) -> None:
        """Send a piece; raises Cut when the client is gone."""
        pieces = [data[at : at + 1] for at in range(len(data))] if slow else [data]
        try:
            for each in pieces:
                self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(each), each))
                if slow:
                    time.sleep(slow / SPEED)
        except OSError as gone:
            raise Cut from gone

    def end(self) -> None:
        """End the body as a server does that has no more to say."""
        self.send(b"")

    def reset(self) -> None:
        """Drop the connection with a reset."""
        reset(self._handler)
        raise Cut

    def alive(self) -> bool:
        """Return whether the client still listens; it never sends anything after its request."""
        try:
            return not select.select([self._handler.connection], [], [], 0)[0]
        except (OSError, ValueError):
            return False


def reset(handler: BaseHTTPRequestHandler) -> None:
    """Drop a connection with a reset."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.shutdown(socket.SHUT_RD)
    handler.rfile.close()
    handler.wfile.close()
    handler.connection.close()
    handler.close_connection = True


def send_log(
    handler: BaseHTTPRequestHandler, entries: Iterator[bytes], fault: Fault | None, *, cut: Callable[[], bool]
) -> None:
    """Send a log; b"" in it is a pause. It ends where `cut` says that its kubelet does."""
    stream, sent = Stream(handler, "text/plain"), 0
    for entry in entries:
        if cut():
            break
        if not entry:
            if not stream.alive():
                raise Cut
            continue
        left = entry
        if fault is not None and (fault.reset or fault.ends or fault.stall) and sent + len(entry) > fault.after:
            if fault.after > sent:
                stream.send(entry[: fault.after - sent])
            _fail(stream, fault)
            if not fault.stall:
                return
            left, fault = entry[max(0, fault.after - sent) :], None
        stream.send(left, fault.slow if fault else 0.0)
        sent += len(entry)
    stream.end()


def _fail(stream: Stream, fault: Fault) -> None:
    if fault.stall:
        time.sleep(fault.stall / SPEED)
    elif fault.reset:
        stream.reset()
    else:
        stream.end()


def send_watch(handler: BaseHTTPRequestHandler, store: Store, asked: Request, fault: Fault | None) -> None:
    """Send events until the client goes, the asked time is over, or the fault comes."""
    selectors.check(asked.resource.kind, asked.query.get("labelSelector", ""), asked.query.get("fieldSelector", ""))
    stream, sent = Stream(handler, "application/json"), 0
    for event in _events(store, asked):
        if event is None:
            if not stream.alive():
                raise Cut
            continue
        line = json.dumps(event).encode() + b"\n"
        if fault is not None and sent == fault.after and not fault.slow:
            if fault.gone:
                stream.send(
                    json.dumps({"type": "ERROR", "object": expired(1, store.version).status()}).encode() + b"\n"
                )
            elif fault.reset:
                stream.send(line[: len(line) // 2])
            _fail(stream, fault)
            if not fault.stall:
                return
            fault = None
        stream.send(line, fault.slow if fault else 0.0)
        sent += 1
    stream.end()


def _events(store: Store, asked: Request) -> Iterator[dict[str, Any] | None]:
    """Yield events, and None now and then while there is nothing new."""
    query, position = asked.query, asked.query.get("resourceVersion", "")
    until = time.monotonic() + int(query.get("timeoutSeconds") or 3600)
    with store.changed:
        seen = store.version if position in ("", "0") else int(position)
        listed = store.all(asked.resource, asked.namespace) if position in ("", "0") else []
    yield from ({"type": "ADDED", "object": each} for each in listed if _selected(asked, each))
    bookmarked = time.monotonic()
    while time.monotonic() < until:
        store.wait(seen, min(0.2, max(0.0, until - time.monotonic())))
        try:
            changes = store.since(seen)
        except ApiError as gone:
            yield {"type": "ERROR", "object": gone.status()}
            return
        for change in changes:
            seen = change.version
            if change.resource.key == asked.resource.key:
                yield _event(asked, change)
        if time.monotonic() - bookmarked >= BOOKMARK_EVERY and query.get("allowWatchBookmarks") in (
            "true",
            "1",
            "True",
        ):
            bookmarked = time.monotonic()
            yield {"type": "BOOKMARK", "object": _bookmark(asked, seen)}
        yield None


def _event(asked: Request, change: Change) -> dict[str, Any] | None:
    if asked.namespace not in ("", change.new["metadata"].get("namespace", "")):
        return None
    now = change.type != "DELETED" and _selected(asked, change.new)
    before = change.old is not None and _selected(asked, change.old)
    if not now and not before:
        return None
    kind = "DELETED" if not now else "MODIFIED" if before else "ADDED"
    return {"type": kind, "object": change.new}


def _selected(asked: Request, thing: Object) -> bool:
    query = asked.query
    return selectors.matches(thing, query.get("labelSelector", ""), query.get("fieldSelector", ""))


def _bookmark(asked: Request, version: int) -> Object:
    resource = asked.resource
    meta = {"resourceVersion": str(version), "creationTimestamp": None}
    return {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta, "spec": {}, "status": {}}
