"""What the log of a followed run shows while it comes: a job that will hang, and what the preflight settled on."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from trainlaunch.run.base.backend import Chunk, Say
from trainlaunch.run.base.clock import clock
from trainlaunch.run.base.run_evidence import TAIL_BYTES, PreflightLine

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.log_facts import LogFacts
    from trainlaunch.diagnose.base.scan import Scanner

HEAD_BYTES = 8 * 1024
WATCHED_BYTES = 8 * 1024
_LOWERED = re.compile(r"preflight passed: (?:(?!preflight ).)*\bnum_workers (\d{1,9})\b", re.ASCII)

HangWatch = Callable[[str], str]


class Log:
    """The first and the last part of a job's output, both streams as they came."""

    def __init__(self, hangs: HangWatch, say: Say) -> None:
        self._head = b""
        self._tail = b""
        self._hangs = hangs
        self._say = say
        self._said = self._has_stderr = False
        self._scanner: Scanner | None = None
        self._last = time.monotonic()
        self._preflight = PreflightLine()

    def take(self, chunk: Chunk) -> None:
        """Keep a chunk, and say once when it shows a job that will hang without ever ending."""
        self._last = time.monotonic()
        if len(self._head) < HEAD_BYTES:
            self._head += chunk.data[: HEAD_BYTES - len(self._head)]
        self._tail = (self._tail + chunk.data)[-TAIL_BYTES:]
        self._scan(chunk.data)
        self._preflight.take(chunk.stderr, chunk.data)
        self._has_stderr |= chunk.stderr  # of a terminal all is stdout, of anything else the preflight's line is not
        if not self._said and (chunk.stderr or not self._has_stderr) and b"Error" in chunk.data:
            sentence = self._hangs(self._tail[-WATCHED_BYTES:].decode(errors="replace"))
            if sentence:
                self._said = True
                self._say(f"since {clock()} {sentence}")

    @property
    def preflight_spoke(self) -> bool:
        """Whether the preflight's last line has come."""
        return self._preflight.seen

    def _scan(self, data: bytes) -> None:
        if self._scanner is None:
            from trainlaunch.diagnose import new_scanner

            self._scanner = new_scanner()
        self._scanner.feed(data)

    @property
    def facts(self) -> LogFacts | None:
        """What all of it says, not only its last part; None where nothing was printed. Asked for at the end."""
        return None if self._scanner is None else self._scanner.facts()

    @property
    def silent(self) -> float:
        """Seconds since the job's last output, or since its start."""
        return time.monotonic() - self._last

    @property
    def text(self) -> str:
        """The last part."""
        return self._tail.decode(errors="replace")

    @property
    def num_workers(self) -> int | None:
        """The workers that the preflight settled on, None before its line."""
        found = _LOWERED.search(self._head.decode(errors="replace"))
        return int(found[1]) if found else None
