"""The plan's word on what Python of ours runs inside the job's own processes."""

from __future__ import annotations

from typing import NamedTuple

HEARTBEAT, WORKERS, PROBE, TUNE = "heartbeat", "workers", "probe", "tune"


class Inside(NamedTuple):
    """What the wrapper delivers: `parts` are modules or packages of launcher.inside, installed in this order.

    `settings` are variables (NAME, value) that the parts read. Without parts nothing is delivered.
    """

    parts: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    def with_part(self, part: str, *settings: tuple[str, str]) -> Inside:
        """Return it with one more part and its variables."""
        return Inside((*self.parts, part), (*self.settings, *settings))
