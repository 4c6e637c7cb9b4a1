"""One container's log file, read as the kubelet reads it (cri-client, pkg/logs): by entry, with its timestamp.

An entry holds a line with its newline, or a piece of one that was longer than the runtime's 16 KiB or that the process
never ended. Timestamps go before lines, not pieces. `sinceTime` arrives at the kubelet in whole seconds, because the
API server hands it on that way, and an entry at that very time is given again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import NamedTuple

from tests.kubernetes.statuses import bad_request

PIECE = 16 << 10


class Entry(NamedTuple):
    """What the runtime wrote at one moment, in nanoseconds since the epoch."""

    at: int
    data: bytes


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The query of a log request."""

    follow: bool = False
    timestamps: bool = False
    since: int = 0
    tail: int | None = None
    limit: int | None = None

    @staticmethod
    def of_query(query: dict[str, str], now: float) -> LogOptions:
        """Read them; raises ApiError (400) for what the server can't read."""
        since = 0
        if "sinceTime" in query:
            since = _nanoseconds(query["sinceTime"]) // 10**9 * 10**9
        if "sinceSeconds" in query:
            since = max(since, int((now - int(query["sinceSeconds"])) * 10**9))
        return LogOptions(
            follow=_is_true(query.get("follow", "")),
            timestamps=_is_true(query.get("timestamps", "")),
            since=since,
            tail=int(query["tailLines"]) if "tailLines" in query else None,
            limit=int(query["limitBytes"]) if "limitBytes" in query else None,
        )


def _is_true(word: str) -> bool:
    return word.lower() in {"true", "1"}


def _nanoseconds(text: str) -> int:
    """Return RFC 3339 as nanoseconds; a fraction of any length is read, as Go does."""
    head, dot, rest = text.replace("Z", "+00:00").partition(".")
    digits = ""
    if dot:
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        head += rest[len(digits) :]
    try:
        whole = datetime.fromisoformat(head)
    except ValueError as cause:
        raise bad_request(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}"') from cause
    if whole.tzinfo is None:
        raise bad_request(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"')
    return int(whole.timestamp()) * 10**9 + int(digits.ljust(9, "0")[:9] or "0")


def stamp(at: int) -> bytes:
    """Return nanoseconds as the kubelet prints them: nine digits, always."""
    whole = datetime.fromtimestamp(at // 10**9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{at % 10**9:09d}Z".encode()


class Log:
    """What a container has written so far; safe for one writer and many readers."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._first = 0  # entries before it were rotated away
        self._ended = False
        self._changed = threading.Condition()
        self.opened = threading.Event()  # somebody reads it, or has

    def write(self, data: bytes, at: int) -> None:
        """Add output of one moment, cut as the runtime cuts it."""
        entries = []
        for line in _lines(data):
            entries += [Entry(at, line[start : start + PIECE]) for start in range(0, len(line), PIECE)]
        with self._changed:
            self._entries += entries
            self._changed.notify_all()

    def end(self) -> None:
        """The container is over: followers read to the end and stop."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def rotate(self) -> None:
        """Move what there is to a file that no later request reads; streams that are open go on."""
        with self._changed:
            self._first = len(self._entries)

    def read(self, options: LogOptions) -> Iterator[bytes]:
        """Yield entries as the kubelet would write them, and b"" now and then while there is nothing new."""
        position, left = self._start(options), options.limit
        self.opened.set()
        new_line = True
        while True:
            with self._changed:
                if position >= len(self._entries) and options.follow and not self._ended:
                    self._changed.wait(0.2)
                fresh = self._entries[position:]
                over = not fresh and (self._ended or not options.follow)
            if over:
                return
            position += len(fresh)
            for entry in fresh:
                if entry.at >= options.since:
                    data = (stamp(entry.at) + b" " if options.timestamps and new_line else b"") + entry.data
                    yield data if left is None else data[:left]
                    left = None if left is None else left - len(data)
                    if left is not None and left <= 0:
                        return
                new_line = entry.data.endswith(b"\n")
            if not fresh:
                yield b""

    def _start(self, options: LogOptions) -> int:
        with self._changed:
            if options.tail is None:
                return self._first
            kept = range(self._first, len(self._entries))
            ends = [each for each in kept if self._entries[each].data.endswith(b"\n")]
            if options.tail >= len(ends):
                return self._first
            return ends[-options.tail - 1] + 1 if options.tail else len(self._entries)


def _lines(data: bytes) -> list[bytes]:
    """Split at newlines only: a carriage return is part of its line."""
    parts = data.split(b"\n")
    whole = [each + b"\n" for each in parts[:-1]]
    return [*whole, parts[-1]] if parts[-1] else whole
