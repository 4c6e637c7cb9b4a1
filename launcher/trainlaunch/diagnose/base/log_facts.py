"""What a log said: the first lines of each known text, and the tracebacks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.tracebacks import Traceback

MAX_HITS = 12  # of one text
MAX_TRACEBACKS = 48


class Hit(NamedTuple):
    """A line that has a known text; `line` counts from 1, and `traceback` is the one that the line is part of."""

    line: int
    text: str
    match: re.Match[str]
    source: str = "log"
    owner: str = ""
    traceback: Traceback | None = None

    def within(self, pattern: str) -> bool:
        """Whether its traceback has a regular expression."""
        return self.traceback is not None and self.traceback.has(pattern)


@dataclass(slots=True)
class LogFacts:
    """The facts of one log. `lines` is how many it has, `last` are its last ones."""

    lines: int = 0
    last: tuple[str, ...] = ()
    tracebacks: list[Traceback] = field(default_factory=list)
    _hits: dict[LogPattern, list[Hit]] = field(default_factory=dict)
    _counts: dict[LogPattern, int] = field(default_factory=dict)
    _signatures: set[tuple[str, ...]] = field(default_factory=set)

    def add(self, text: LogPattern, hit: Hit) -> None:
        """Keep a line: the first ones of a text, and always the last."""
        kept = self._hits.setdefault(text, [])
        self._counts[text] = self._counts.get(text, 0) + 1
        if len(kept) >= MAX_HITS:
            kept.pop()
        kept.append(hit)

    def counted(self, text: LogPattern) -> int:
        """Return how many lines had a text."""
        return self._counts.get(text, 0)

    def hits(self, *texts: LogPattern) -> list[Hit]:
        """Return the kept lines that have one of the texts, by line."""
        return sorted((hit for text in texts for hit in self._hits.get(text, ())), key=lambda each: each.line)

    def keep(self, traceback: Traceback) -> None:
        """Keep a traceback, the first of those that are alike; the last one of all stays in any case."""
        frame = traceback.user_frame
        place = (frame.file, str(frame.line)) if frame else ()
        signature = (traceback.type, re.sub(r"\d+", "", traceback.message)[:120], *place, str(traceback.ignored))
        if signature in self._signatures:
            return
        if len(self._signatures) < 10 * MAX_TRACEBACKS:
            self._signatures.add(signature)
        if len(self.tracebacks) >= MAX_TRACEBACKS:
            del self.tracebacks[MAX_TRACEBACKS // 2]
        self.tracebacks.append(traceback)

    def chain(self, previous: Traceback | None) -> None:
        """Note that the next traceback of the same owner came out of this one."""
        if previous is not None:
            previous.led_on = True
