"""What a follower keeps of the attempt that it follows."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.run.base.backend import Peak
from trainlaunch.run.base.shm_reading import highest
from trainlaunch.run.base.watch import Log, ShmWatch
from trainlaunch.run.run_record import RunRecord


class WatchedContainer(NamedTuple):
    """What is kept of one container while it is followed."""

    log: Log
    shm: ShmWatch


class Attempt(NamedTuple):
    """One attempt of a run; `watched` has its containers by node, under None where there is one.

    `resumed`: somebody else started it, so its first output is the log's, as far as the log goes back.
    """

    container: str
    run: str
    number: int
    watched: dict[int | None, WatchedContainer]
    resumed: bool = False

    def preflight(self, node: int | None) -> bool | None:
        """Return whether the preflight of a container spoke; None where it may have, before what was seen."""
        return self.watched[node].log.preflight_spoke or (None if self.resumed else False)

    def peak(self, kept: RunRecord | None) -> Peak | None:
        """Return the highest peak in /dev/shm of its containers that anyone saw: `status` may have seen more."""
        noted = [] if kept is None else [kept.peak(self.number, node) for node in self.watched]
        return highest([*noted, *(each.shm.seen for each in self.watched.values())])
